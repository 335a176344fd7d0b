//! Host lists compared with `scontrol show hostlist`, `show hostnames` and `show hostlistsorted`.

use std::fs;

use anyhow::{Context, Result, ensure};
use slurm::hostlist::{Hostlist, HostlistError, Problem};
use testkit::cache::SlurmVersion;
use testkit::mutate::Random;
use testkit::slurm::SlurmCluster;

const CASES: usize = 10_000;
const LIMIT: usize = 100_000;

#[expect(clippy::print_stdout, reason = "how many of each kind, shown with --nocapture")]
pub(crate) async fn random_lists_agree_with_scontrol(version: SlurmVersion) -> Result<()> {
    let cluster = start(version).await?;
    let cases = random_cases(CASES);
    let asked: Vec<&str> = cases.iter().map(|(text, _)| text.as_str()).collect();
    let folded = show(&cluster, "hostlist", &asked).await?;
    let names = show(&cluster, "hostnames", &asked).await?;
    let sorted = show(&cluster, "hostlistsorted", &asked).await?;

    let (mut accepted, mut refused, mut misread, mut lost, mut mixed) = (0, 0, 0, 0, 0);
    for (at, (text, list)) in cases.iter().enumerate() {
        let (folded, names, sorted) = (&folded[at], &names[at], &sorted[at]);
        let list = match list {
            Ok(list) => list,
            // A list that Slurm refuses has no answer at all; an empty one has an empty line.
            Err(_) if folded.is_empty() => {
                refused += 1;
                continue;
            }
            Err(error) => {
                ensure!(is_misread(text, &error.problem), "scontrol takes {text:?} as {folded:?}: {error}");
                misread += 1;
                continue;
            }
        };
        accepted += 1;
        ensure!(*folded == [list.to_string()], "{text:?}: scontrol says {folded:?}, we say {list}");
        let expanded = list.expand(LIMIT)?;
        ensure!(*names == expanded, "{text:?}: scontrol says {names:?}, we say {expanded:?}");
        let own = list.sorted(LIMIT)?.to_string();
        if *sorted != [own.clone()] {
            let kept = sorted.first().context("no answer")?.parse::<Hostlist>()?;
            ensure!(ordered(&kept)? != ordered(list)?, "{text:?}: scontrol sorts to {sorted:?}, we to {own}");
            // Then ours has each name as often as the list, and what scontrol keeps in the order of scontrol.
            let own = own.parse::<Hostlist>()?;
            ensure!(ordered(&own)? == ordered(list)?, "{text:?}: we sort to {own}");
            let mut names = own.iter();
            // Where padded numbers overlap with others it also mixes them, or makes names that nobody listed.
            let in_order = kept.iter().all(|kept| names.any(|name| name == kept));
            mixed += usize::from(!in_order);
            lost += 1;
        }
    }
    println!(
        "Slurm {}: {accepted} lists alike, {refused} refused by both, {misread} refused by us only, \
         {lost} lose names when scontrol sorts them, {mixed} of these their order",
        version.as_str()
    );
    // The cases are the same in every run: if these change, the generator has lost what it is for.
    ensure!(accepted > CASES * 8 / 10 && refused > CASES / 50 && misread > 0, "poor cases");
    ensure!(lost < CASES / 100, "{lost} lists are not compared when sorted");
    ensure!(mixed < CASES / 1000, "{mixed} lists are in another order than ours");
    Ok(())
}

pub(crate) async fn white_space_separates_as_in_scontrol(version: SlurmVersion) -> Result<()> {
    let cluster = start(version).await?;
    for text in ["n1 n2", "n2\tn1,\nn1", " ,a , b ", "\n", "", "r[1-2]n[1,3]  r[1-2]n2"] {
        let list: Hostlist = text.parse()?;
        for (entity, own) in
            [("hostlist", list.to_string()), ("hostlistsorted", list.sorted(LIMIT)?.to_string())]
        {
            let said = show_one(&cluster, entity, text).await?;
            ensure!(said == format!("{own}\n"), "{entity} {text:?}: scontrol says {said:?}, we say {own:?}");
        }
        let said = show_one(&cluster, "hostnames", text).await?;
        ensure!(said.lines().eq(list.iter()), "{text:?}: scontrol says {said:?}");
    }
    Ok(())
}

/// What scontrol makes of lists that we refuse, and the other way round. The first kind is never what a user means.
pub(crate) async fn lists_that_slurm_misreads_are_refused(version: SlurmVersion) -> Result<()> {
    let cluster = start(version).await?;
    let prefix = "x".repeat(254);
    for (why, text, said) in [
        ("a range without an end is one number", "n[5-]", "n5"),
        ("letters after the first number count as padding", "n[1a-5]", "n[01-05]"),
        ("so does a sign", "n[+5]", "n05"),
        ("and a space", "n[1, 5]", "n[1,05]"),
        ("a bracket becomes part of a name", "a]", "a]"),
        ("a bracket becomes part of a name", "a]b[1-2],c", "a]b[1-2],c"),
        ("a bracket becomes part of a name", "a[b[1-2],c", "a[b[1-2],c"),
        ("a bracket becomes part of a name", "n[1]]x", "n1]x"),
        ("what is wrong in the first of three dimensions makes the list empty", "a[x]b[1-2]c[3]", ""),
        ("a carriage return becomes part of a name", "a\r,b", "a\r,b"),
        ("a number above 2^64 becomes another one", "n[99999999999999999999]", "n18446744073709551615"),
        ("a name may be longer than DNS knows", &format!("{prefix}[8-10]"), &format!("{prefix}[8-10]")),
        (
            "outside of the controller's lists, braces are text to 24.11 and nothing to scontrol",
            "a{b}",
            "a{b}",
        ),
    ] {
        ensure!(Hostlist::parse(text).is_err(), "{why}: we take {text:?}");
        let answer = show_one(&cluster, "hostlist", text).await?;
        ensure!(answer.trim_end_matches('\n') == said, "{why}: scontrol says {answer:?} to {text:?}");
    }
    for (why, text, own) in [
        ("ranges of more than 65536 numbers", "n[0-65536]", "n[0-65536]"),
        ("more than 65536 prefixes", "n[0-32767,0-32767,0]x[1-2]", "n[0-32767,0-32767,0]x[1-2]"),
    ] {
        let list = Hostlist::parse(text)?.to_string();
        ensure!(list == own, "{why}: we say {list:?}");
        let answer = show_one(&cluster, "hostlist", text).await?;
        ensure!(answer.is_empty(), "{why}: scontrol says {answer:?} to {text:?}");
    }
    // A name is a name, also with a number that does not fit.
    let text = "n99999999999999999999,n18446744073709551615,n1";
    ensure!(Hostlist::parse(text)?.to_string() == text, "we change {text}");
    let answer = show_one(&cluster, "hostlist", text).await?;
    ensure!(answer == "n[18446744073709551615,18446744073709551615,1]\n", "scontrol says {answer:?}");
    Ok(())
}

/// Where `hostlistsorted` forgets names, we do not follow.
pub(crate) async fn what_scontrol_sorts_away_stays(version: SlurmVersion) -> Result<()> {
    let cluster = start(version).await?;
    for (why, text, said, own) in [
        (
            "a difference of 2^31 or more changes its sign",
            "n3000000000,n1",
            "n[3000000000]",
            "n[1,3000000000]",
        ),
        (
            "overlaps that go over into another number of digits, with padded numbers behind",
            "n[7-11],n[8-12],n05",
            "n[7-8,8-9,9-10,10-11,11]",
            "n[7-8,8-9,9-10,10-11,11-12,05]",
        ),
        (
            "such overlaps become names that nobody listed",
            "n[0007-0009,996-1003,999-1005,998-1002]",
            "n[996-998,998-999,999,999-1000,1000,1000-1001,1001,1001-1002,1002,0008-0009,0009-1003]",
            "n[996-998,998-999,999,999-1000,1000,1000-1001,1001,1001-1002,1002,1002-1003,1003-1005,0007-0009]",
        ),
    ] {
        let answer = show_one(&cluster, "hostlistsorted", text).await?;
        ensure!(answer.trim_end() == said, "{why}: scontrol says {answer:?}");
        let sorted = Hostlist::parse(text)?.sorted(LIMIT)?.to_string();
        ensure!(sorted == own, "{why}: we say {sorted:?}");
    }
    Ok(())
}

/// The reasons why a random list is refused by us and not by Slurm, as `lists_that_slurm_misreads_are_refused` shows.
fn is_misread(text: &str, problem: &Problem) -> bool {
    let within_three_dimensions = text.matches('[').count() > 2;
    match problem {
        Problem::Unopened | Problem::Nested => true,
        Problem::NotARange(range) if range.ends_with('-') => true,
        Problem::NotARange(_) | Problem::Backwards(_) => within_three_dimensions || has_odd_brackets(text),
        _ => false,
    }
}

fn has_odd_brackets(text: &str) -> bool {
    let brackets: String = text.chars().filter(|letter| matches!(letter, '[' | ']')).collect();
    !brackets.replace("[]", "").is_empty()
}

fn ordered(list: &Hostlist) -> Result<Vec<String>> {
    let mut names = list.expand(LIMIT)?;
    names.sort_unstable();
    Ok(names)
}

async fn start(version: SlurmVersion) -> Result<SlurmCluster> {
    SlurmCluster::builder(version).nodes(0).start().await
}

async fn show_one(cluster: &SlurmCluster, entity: &str, text: &str) -> Result<String> {
    let script = r#"scontrol show "$0" "$1" 2>/dev/null || true"#;
    cluster.exec("slurmctld", &["sh", "-c", script, entity, text]).await
}

/// The lines that scontrol answers to each. It is started once and reads its commands as from a terminal, so what it
/// prompts with and repeats stands before each answer.
async fn show(cluster: &SlurmCluster, entity: &str, lists: &[&str]) -> Result<Vec<Vec<String>>> {
    let commands: String = lists.iter().map(|list| format!("show {entity} {list}\n")).collect();
    fs::write(cluster.path("slurmctld", "/tmp/commands")?, commands)?;
    let script = "scontrol < /tmp/commands 2>/dev/null || true";
    let output = cluster.exec("slurmctld", &["sh", "-c", script]).await?;

    let mut answers: Vec<Vec<String>> = Vec::new();
    for line in output.lines() {
        match answers.last_mut() {
            _ if line.starts_with("scontrol: ") => answers.push(Vec::new()),
            Some(answer) => answer.push(line.to_owned()),
            None => {}
        }
    }
    answers.truncate(lists.len());
    ensure!(
        answers.len() == lists.len(),
        "scontrol ended after {:?}",
        answers.len().checked_sub(1).map(|at| lists[at])
    );
    Ok(answers)
}

/// The same lists in every run, each with what we make of it. None has more names than the test can take.
fn random_cases(count: usize) -> Vec<(String, Result<Hostlist, HostlistError>)> {
    let mut random = Random::default();
    let mut cases = Vec::new();
    while cases.len() < count {
        let text = list(&mut random);
        let list = Hostlist::parse(&text);
        let is_small = list.as_ref().map_or(true, |list| list.count() < 1500);
        // To scontrol, a slash is a file, a dash the standard input, and nothing is a mistake.
        if is_small && !text.is_empty() && !text.starts_with(['/', '-']) {
            cases.push((text, list));
        }
    }
    cases
}

fn list(random: &mut Random) -> String {
    // The same few names again and again, or any.
    let few = random.below(6) == 0;
    let entries: Vec<String> =
        (0..=random.below(7)).map(|_| if few { familiar(random) } else { entry(random) }).collect();
    let mut text = entries.join(",");
    if random.below(6) == 0 {
        let at = random.below(text.len());
        match random.below(3) {
            0 => drop(text.remove(at)),
            _ => text.insert(at, random.pick(&['[', ']', ',', 'x', '-'])),
        }
    }
    text
}

fn familiar(random: &mut Random) -> String {
    let (low, more) = (random.below(12), random.below(4));
    match random.below(4) {
        0 => format!("n{low}"),
        1 => format!("n{low:02}"),
        2 => format!("n[{low}-{}]", low + more),
        _ => format!("n[{low:02}-{:02}]", low + more),
    }
}

fn entry(random: &mut Random) -> String {
    match random.below(16) {
        0..4 => {
            let (number, width) = number(random);
            format!("{}{number:0width$}", text(random))
        }
        // No larger: scontrol loses names when it sorts numbers that are too far apart.
        4 => format!("{}{}", text(random), random.below(10_000_000)),
        5 => format!("{}login", text(random)),
        6 => format!("k{:022}", random.below(4)),
        7..12 => text(random) + &brackets(random, 4, 40) + end(random),
        12..15 => {
            text(random)
                + &brackets(random, 2, 6)
                + text(random).as_str()
                + &brackets(random, 3, 20)
                + end(random)
        }
        _ => {
            let parts = 3 + random.below(2);
            (0..parts).map(|_| text(random) + &brackets(random, 2, 2)).collect()
        }
    }
}

fn text(random: &mut Random) -> String {
    let texts =
        ["a", "b", "c", "gpu-", "n", "node", "x1-", "r", "A_", "a.b", "0", "9", "10", "", "r2", "r10"];
    random.pick(&texts).to_owned()
}

fn end(random: &mut Random) -> &'static str {
    random.pick(&["", "", "", "", "-ib", "7", "0", ".x1"])
}

/// A number and its width, often where the number of digits changes.
fn number(random: &mut Random) -> (usize, usize) {
    let (from, many) = random.pick(&[(0, 15), (0, 15), (0, 150), (95, 9), (95, 9), (995, 10)]);
    (from + random.below(many), random.pick(&[1, 1, 1, 2, 2, 3, 3, 4]))
}

fn brackets(random: &mut Random, most: usize, longest: usize) -> String {
    let ranges: Vec<String> = (0..=random.below(most))
        .map(|_| {
            let (low, width) = number(random);
            let high = low + random.below(longest);
            match random.below(150) {
                0 => format!("{high:0width$}-{low}"),
                1..50 => format!("{low:0width$}"),
                50..70 => {
                    let other = 1 + random.below(5);
                    format!("{low:0width$}-{high:0other$}")
                }
                _ => format!("{low:0width$}-{high:0width$}"),
            }
        })
        .collect();
    format!("[{}]", ranges.join(","))
}
