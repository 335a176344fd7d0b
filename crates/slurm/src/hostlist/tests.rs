use proptest::prelude::*;

use super::*;

fn list(text: &str) -> Hostlist {
    Hostlist::parse(text).unwrap()
}

fn names(text: &str) -> Vec<String> {
    list(text).expand(1000).unwrap()
}

fn problem(text: &str) -> String {
    Hostlist::parse(text).unwrap_err().to_string()
}

#[test]
fn brackets_stand_for_names() {
    assert_eq!(names("n[1,3-5,007]"), ["n1", "n3", "n4", "n5", "n007"]);
    assert_eq!(names("n[8-11] n[08-11]"), ["n8", "n9", "n10", "n11", "n08", "n09", "n10", "n11"]);
    assert_eq!(names(",login\tn1-ib ,\nx[1-2]-ib,"), ["login", "n1-ib", "x1-ib", "x2-ib"]);
    assert_eq!(names("[1-2],3,4[5-6]"), ["1", "2", "3", "45", "46"]);
    assert_eq!(names(""), [""; 0]);
}

#[test]
fn the_place_before_the_last_turns_slowest() {
    assert_eq!(list("a[1-2]b[3-4]c[5-6]").to_string(), "a1b3c[5-6],a2b3c[5-6],a1b4c[5-6],a2b4c[5-6]");
    assert_eq!(names("a[1-2][3-4]x"), ["a13x", "a14x", "a23x", "a24x"]);
}

#[test]
fn neighbours_join_and_repeats_stay() {
    assert_eq!(list("n1,n2,n3,n5,n5,n4").to_string(), "n[1-3,5,5,4]");
    assert_eq!(list("n9,n10,n08,n09,n10,n010").to_string(), "n[9-10,08-10,010]");
    assert_eq!(list("a,a,b1,c").to_string(), "a,a,b1,c");
}

#[test]
fn numbers_too_long_to_count_with_are_text() {
    let long = "n99999999999999999999";
    assert_eq!(list(&format!("{long},n1")).to_string(), format!("{long},n1"));
    assert_eq!(list("n000000000000000000000001").unique(1).unwrap().to_string(), "n000000000000000000000001");
    assert!(problem("n[1-99999999999999999999]").contains("too large"));
}

#[test]
fn a_list_may_stand_for_more_names_than_there_is_memory() {
    let many = list("n[0-4000000000],r[0-9000000000]n[0-9000000000]m[0-9000000000]-ib");
    assert_eq!(many.count(), u64::MAX);
    assert!(many.contains("n3999999999") && many.contains("r7n8000000000m9-ib"));
    assert!(!many.contains("n4000000001") && !many.contains("r7n9000000001m9-ib"));
    assert_eq!(many.iter().nth(2).as_deref(), Some("n2"));
    let folded = "n[0-4000000000],r[0-9000000000]n[0-9000000000]m[0-9000000000]-ib";
    assert_eq!(many.to_string(), folded);
    assert_eq!(many.expand(1000).unwrap_err().to_string(), "expand a host list: it has more than 1000 names");
    assert_eq!(
        many.unique(1000).unwrap_err().to_string(),
        "expand a host list: it has more than 1000 ranges"
    );
    assert!(many.sorted(1000).is_err());
    assert_eq!(list("n[0-4000000000],n7").unique(2).unwrap().to_string(), "n[0-4000000000]");
    assert!(list("n[0-4000000000],n[0-4000000000]").sorted(1000).is_err());
}

#[test]
fn a_short_text_does_not_take_much_memory() {
    let prefix = "x".repeat(250);
    let ranges = |count: usize| format!("{prefix}[{}]", vec!["1"; count].join(","));
    assert_eq!(Hostlist::parse(&ranges(65_536)).unwrap().count(), 65_536);
    let refused = Hostlist::parse(&ranges(65_537)).unwrap_err();
    assert_eq!(refused.problem, Problem::TooMany);
    let several = vec![ranges(40_000); 2].join(",");
    assert_eq!(Hostlist::parse(&several).unwrap_err().problem, Problem::TooMany);
    let names: Vec<String> = (0..65_536).map(|number| format!("n{number}x")).collect();
    assert!(Hostlist::parse(&names.join(",")).is_ok());
    assert!(Hostlist::parse(&format!("{},a", names.join(","))).is_err());
    assert!(Hostlist::from_names(names.iter().chain(["a".to_owned()].iter())).is_ok());
}

#[test]
fn many_ways_to_read_a_name_take_no_time() {
    let ambiguous = format!("{}x", "[0-9999999]".repeat(30));
    let digits = "1".repeat(200);
    assert!(list(&ambiguous).contains(&format!("{digits}x")));
    assert!(!list(&ambiguous).contains(&format!("{digits}y")));
}

#[test]
fn zeros_in_front_are_part_of_a_name() {
    let padded = list("n[08-11],r[0-1]n[00-15]-ib");
    for name in ["n08", "n10", "r0n07-ib", "r1n15-ib"] {
        assert!(padded.contains(name), "{name}");
    }
    for name in ["n8", "n010", "r0n7-ib", "r1n015-ib", "r2n07-ib", "r0n07", "", "n", "n+8", "n 8"] {
        assert!(!padded.contains(name), "{name}");
    }
}

#[test]
fn sorting_keeps_repeats() {
    let sorted = |text| list(text).sorted(100).unwrap().to_string();
    assert_eq!(sorted("n3,n1,n[1-5]"), "n[1,1-3,3-5]");
    assert_eq!(sorted("n[1-3],n[1-3],n[1-3]"), "n[1,1,1-2,2,2-3,3,3]");
    assert_eq!(sorted("n[8-12],n05,m,n,n100"), "m,n,n[8-12,05,100]");
    assert_eq!(sorted("r10n1,r2n1,r2n[0-1]"), "r2n[0-1,1],r10n1");
    assert_eq!(sorted("n3000000000,n1"), "n[1,3000000000]");
}

#[test]
fn unique_names_are_written_in_one_way() {
    let unique = |text| list(text).unique(100).unwrap().to_string();
    assert_eq!(unique("n3,n1,n[1-5]"), "n[1-5]");
    assert_eq!(unique("n1[0-3],n[7-11],n12,n[1-2]5"), "n[7-13,15,25]");
    assert_eq!(unique("n1[8-12]"), "n[18-19,110-112]");
    assert_eq!(unique("n[098-101],n[98-101]"), "n[98-99,098-101]");
    let nines = |count| "9".repeat(count);
    let long = format!("n{}[8-9],n{}", nines(30), nines(31));
    assert_eq!(unique(&long), format!("n{}[{}8-{}]", nines(12), nines(18), nines(19)));
}

#[test]
fn lists_are_joined_and_taken_apart_by_names() {
    let (a, b) = (list("n[1-10],login,x[1-3]"), list("n[4-5,7,10-20],x2,y"));
    assert_eq!(a.union(&b, 100).unwrap().to_string(), "login,n[1-20],x[1-3],y");
    assert_eq!(a.difference(&b, 100).unwrap().to_string(), "login,n[1-3,6,8-9],x[1,3]");
    assert_eq!(b.difference(&a, 100).unwrap().to_string(), "n[11-20],y");
    let (a, b) = (list("n[1-2,5-6,9-10]"), list("n[2-9]"));
    assert_eq!(a.difference(&b, 100).unwrap().to_string(), "n[1,10]");
    assert_eq!(b.difference(&a, 100).unwrap().to_string(), "n[3-4,7-8]");
}

#[test]
fn names_are_folded_and_nothing_else() {
    assert_eq!(Hostlist::from_names(["n1", "n2", "a"]).unwrap().to_string(), "n[1-2],a");
    let refused = |name: &str| Hostlist::from_names([name]).unwrap_err().to_string();
    assert_eq!(refused("a,b"), "read a host list: at byte 1: ',' is not part of a name");
    for name in ["", "a b", "a[1]", "a\nb", "a{", &"n".repeat(MAX_NAME + 1)] {
        assert!(Hostlist::from_names([name]).is_err(), "{name:?}");
    }
}

#[test]
fn errors_say_what_and_where() {
    let message = |text: &str| problem(text).replace("read a host list: at byte ", "");
    assert_eq!(message("a,n[1-3"), "3: `[` without `]`");
    assert_eq!(message("a,n1]"), "4: `]` without `[`");
    assert_eq!(message("n[1[2]]"), "3: `[` within brackets: write `a[1-2]b[3-4]` for several dimensions");
    assert_eq!(message("n[1,x]"), "4: `x` is not a number or a range: write `3`, `008` or `1-5`");
    assert_eq!(message("n[7,5-3]"), "4: the range `5-3` goes backwards: write the smaller number first");
    assert_eq!(
        message("blocks{3}"),
        "6: functions in braces are expanded by slurmctld only: write the names"
    );
    assert_eq!(message("n1\r\n"), "2: '\\r' is not part of a name");
    assert_eq!(message(&"n".repeat(300)), "0: a name is longer than 255 bytes");
    assert!(message(&format!("n[{}]", "x".repeat(1000))).len() < 150);
    for text in ["n[]", "n[1,]", "n[,1]", "n[1-]", "n[-1]", "n[1-2-3]", "n[ 1]", "n[+1]", "n[1a-2]", "n[0x1]"]
    {
        assert!(problem(text).contains("is not a number or a range"), "{text}");
    }
}

#[test]
fn a_fixed_number_of_mutated_lists_keeps_every_promise() {
    let seeds: [&[u8]; 6] = [
        b"gpu-[0-3,008],cpu-[08-11]-x,r[1-2]n[0-9],last",
        b"n[1-20]5,n125,n[98-102],n[098-102] n7\tn8\n,,",
        b"a[1-2][3-4]b[5-6]c",
        b"n[0-4000000000],n99999999999999999999,[1-3],7",
        b"r[0-99999999]n[0-99999999]m[0-99999999]",
        b"\xc3\xa9[1-2],\xc3\xa93,n1,n1,n3,n2,n1",
    ];
    testkit::mutate::cases(&seeds, 20_000, check_invariants);
}

fn entry() -> impl Strategy<Value = String> {
    let ranges = prop::collection::vec(
        prop_oneof![
            (0_u64..120, 1_usize..4).prop_map(|(number, width)| format!("{number:0width$}")),
            (0_u64..120, 0_u64..15, 1_usize..4)
                .prop_map(|(lo, more, width)| format!("{lo:0width$}-{:0width$}", lo + more)),
        ],
        1..3,
    )
    .prop_map(|ranges| format!("[{}]", ranges.join(",")));
    (prop::collection::vec(("[ab]?[0-9]?", ranges), 0..3), "[ab]?[0-9]{0,3}").prop_map(|(parts, end)| {
        parts.into_iter().map(|(text, ranges)| text + &ranges).collect::<String>() + &end
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(entries in prop::collection::vec(entry(), 0..5)) {
        check_invariants(entries.join(",").as_bytes());
    }

    #[test]
    fn names_come_back_in_order(names in prop::collection::vec("[ab]{0,1}[0-9]{1,3}", 0..20)) {
        let written = Hostlist::from_names(&names).unwrap().to_string();
        prop_assert_eq!(list(&written).expand(20).unwrap(), names);
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[a0-9,\\[\\]\\- ]{0,40}") {
        check_invariants(text.as_bytes());
    }
}
