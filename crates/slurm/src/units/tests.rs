use std::time::Duration;

use proptest::prelude::*;

use super::*;

fn mib(text: &str) -> u64 {
    Memory::parse(text).unwrap().mib()
}

fn seconds(text: &str) -> u64 {
    TimeLimit::parse(text).unwrap().duration().unwrap().as_secs()
}

#[test]
fn memory_without_a_unit_is_mib() {
    assert_eq!(mib("2000"), 2000);
    assert_eq!(mib("191356M"), 191_356);
    assert_eq!(mib("62.50G"), 64_000);
    assert_eq!(mib("1.5T"), 1_572_864);
    assert_eq!(mib("1P"), 1 << 30);
    assert_eq!((mib("1K"), mib("1024k"), mib("1025KB")), (1, 1, 2));
    assert_eq!((mib("0"), mib("0.1M"), mib("1gb")), (0, 1, 1024));
}

#[test]
fn memory_is_written_without_loss() {
    let written = |text| Memory::parse(text).unwrap().to_string();
    assert_eq!(written("62.50G"), "64000M");
    assert_eq!(written("64G"), "64G");
    assert_eq!(written("1048576"), "1T");
    assert_eq!(written("2048T"), "2P");
    assert_eq!(written("0G"), "0");
}

#[test]
fn what_is_no_memory_is_refused() {
    for text in
        ["", "G", "-1", "+1", "1.", ".5G", "1..5", "1.5.5G", "1 G", "1GG", "1X", "1B", "1e3", "1,5G", "1G\n"]
    {
        let message = Memory::parse(text).unwrap_err().to_string();
        assert!(message.contains("write a number with K, M, G, T or P"), "{message}");
    }
    for text in ["99999999999999999999", "18446744073709551615P", "16777217P"] {
        let message = Memory::parse(text).unwrap_err().to_string();
        assert_eq!(
            message,
            format!(
                "read `{text}` as an amount of memory: that is more than Slurm can count; the most is 16777216P"
            )
        );
    }
    assert_eq!(mib("16777216P"), 1 << 54);
}

#[test]
fn every_form_of_a_time_limit_is_read() {
    assert_eq!(seconds("90"), 5400);
    assert_eq!(seconds("90:30"), 5430);
    assert_eq!(seconds("1:02:03"), 3723);
    assert_eq!(seconds("2-3"), 183_600);
    assert_eq!(seconds("2-3:04"), 183_840);
    assert_eq!(seconds("2-03:04:05"), 183_845);
    assert_eq!(seconds("0-48"), 172_800);
    for text in ["INFINITE", "Unlimited", "-1"] {
        assert_eq!(TimeLimit::parse(text), Ok(TimeLimit::Unlimited));
    }
}

#[test]
fn what_is_no_time_limit_is_refused() {
    for text in
        ["", "1:", ":1", "1-", "-2", "1-2-3", "1:2:3:4", "1-2:3:4:5", "1:2-3", "1d", " 1", "+1", "1.5"]
    {
        let message = TimeLimit::parse(text).unwrap_err().to_string();
        assert!(message.starts_with(&format!("read `{text}` as a time limit: write minutes")), "{message}");
    }
    for text in ["24855-03:13:01", "99999999999", "4294967295-4294967295:4294967295:4294967295", "35791394"] {
        let message = TimeLimit::parse(text).unwrap_err().to_string();
        assert!(message.ends_with("the most is 24855-03:13:00"), "{message}");
    }
    assert_eq!(seconds("24855-03:13:00"), 2_147_483_580);
}

#[test]
fn begun_minutes_and_seconds_count() {
    assert_eq!(TimeLimit::parse("0:61").unwrap().minutes(), Some(2));
    assert_eq!(TimeLimit::from_duration(Duration::from_millis(1500)), Ok(TimeLimit::Seconds(2)));
    assert!(TimeLimit::from_duration(Duration::MAX).is_err());
    assert!(TimeLimit::Unlimited > TimeLimit::Seconds(u32::MAX));
}

#[test]
fn tres_keep_their_order_and_types() {
    let text = "cpu=16,mem=191356M,gres/gpu:a100=8,node=1,billing=32,license/x=2";
    let mut tres = Tres::parse(text).unwrap();
    assert_eq!(tres.to_string(), text);
    assert_eq!(tres.memory(), Some(Memory::from_mib(191_356)));
    assert_eq!((tres.count("cpu"), tres.count("gres/gpu:a100"), tres.count("gres/nic")), (16, 8, 0));
    let kinds: Vec<_> = tres.iter().map(|(name, _)| (name.kind(), name.name())).collect();
    assert_eq!(kinds[2], ("gres", Some("gpu:a100")));
    assert_eq!(kinds[3], ("node", None));

    tres.set(TresName::parse("CPU").unwrap(), Amount::Count(4));
    tres.set(TresName::parse("bb/x").unwrap(), Amount::Count(2048));
    assert_eq!(tres.to_string(), "cpu=4,mem=191356M,gres/gpu:a100=8,node=1,billing=32,license/x=2,bb/x=2G");
}

#[test]
fn many_tres_are_soon_read() {
    let text: Vec<String> = (0..200_000).map(|number| format!("gres/a{number}=1")).collect();
    assert_eq!(Tres::parse(&text.join(",")).unwrap().iter().count(), 200_000);
}

#[test]
fn tres_that_slurm_would_not_take_are_refused() {
    let problem = |text| Tres::parse(text).unwrap_err().to_string();
    assert!(problem("cpu").contains("write TYPE=AMOUNT"));
    assert!(problem("cpu=1,").contains("write TYPE=AMOUNT"));
    assert!(problem("=1").contains("write TYPE or TYPE/NAME"));
    assert!(problem("gres/=1").contains("write TYPE or TYPE/NAME"));
    assert!(problem("gpu\nx=1").contains("write TYPE or TYPE/NAME"));
    assert!(problem("cpu=1.5").contains("a whole number"));
    assert!(problem("cpu=").contains("a whole number"));
    assert!(problem("mem=").contains("write a number with K"));
    assert_eq!(problem("cpu=1,CPU=2"), "read `CPU` as a TRES string: this name is listed twice");
    assert!(problem("cpu=18446744073709551613").contains("the most is 18446744073709551612"));
    assert!(problem("cpu=99999999999999999P").contains("more than Slurm can count"));
    assert_eq!(Tres::parse("gres/x=2K").unwrap().to_string(), "gres/x=2048");
    assert_eq!(Tres::parse("").unwrap(), Tres::default());
}

proptest! {
    #[test]
    fn memory_comes_back(amount in 0_u64..=1 << 54) {
        let memory = Memory::from_mib(amount);
        prop_assert_eq!(memory.to_string().parse(), Ok(memory));
    }

    #[test]
    fn time_limits_come_back(seconds in 0..=2_147_483_580_u32) {
        let limit = TimeLimit::Seconds(seconds);
        prop_assert_eq!(limit.to_string().parse(), Ok(limit));
    }

    #[test]
    fn tres_come_back(
        entries in prop::collection::btree_map("cpu|mem|node|(gres|license|bb)/[a-z]{1,3}(:[a-z0-9]{1,3})?", 0_u64..1 << 54, 0..6)
    ) {
        let mut tres = Tres::default();
        for (name, amount) in entries {
            tres.set(TresName::parse(&name).unwrap(), Amount::Count(amount));
        }
        prop_assert_eq!(tres.to_string().parse(), Ok(tres));
    }

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,30}|[0-9:.,=/KMGTPB-]{0,30}") {
        let _ = (Memory::parse(&text), TimeLimit::parse(&text), Tres::parse(&text));
    }
}
