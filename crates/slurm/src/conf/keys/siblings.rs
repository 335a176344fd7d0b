//! Keys that are in each other's way.

/// Keys that say the same in other words, or shut each other out. Of two of them Slurm takes one, which may not be
/// the one that came last.
const SIBLINGS: &[&[&str]] = &[
    &["AcctGatherInterconnectType", "AcctGatherInfinibandType"],
    &["BcastParameters", "SbcastParameters"],
    &["NamespaceType", "JobContainerType"],
    &["DefMemPerNode", "DefMemPerCPU"],
    &["MaxMemPerNode", "MaxMemPerCPU"],
    // Of slurmdbd.
    &["PurgeEventMonths", "PurgeEventAfter"],
    &["PurgeJobMonths", "PurgeJobAfter", "JobPurge"],
    &["StepPurge", "PurgeStepMonths", "PurgeStepAfter"],
    &["PurgeSuspendMonths", "PurgeSuspendAfter"],
    &["PurgeTXNMonths", "PurgeTXNAfter"],
    &["PurgeUsageMonths", "PurgeUsageAfter"],
    // Of nodes.
    &["Feature", "Features"],
    &["CPUs", "Procs"],
    // Of partitions.
    &["OverSubscribe", "Shared"],
    // Of devices. With a file and several files slurmd does not start.
    &["File", "Files", "MultipleFiles"],
    &["Cores", "CPUs"],
    &["Link", "Links"],
];

/// The key, and all that would decide for or against it if they stood beside it.
pub(in crate::conf) fn and_siblings(name: &'static str) -> impl Iterator<Item = &'static str> {
    let groups = SIBLINGS.iter().copied().filter(move |group| group.contains(&name));
    std::iter::once(name).chain(groups.flatten().copied().filter(move |sibling| *sibling != name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conf::keys::{FileKind, Key};

    #[test]
    fn siblings_are_keys_that_stand_in_one_place() {
        let places = FileKind::ALL
            .iter()
            .flat_map(|file| file.keys().iter().filter_map(|key| key.kind.line()).chain([file.keys()]));
        let places: Vec<&[Key]> = places.collect();
        for group in SIBLINGS {
            let has_all = |keys: &&&[Key]| group.iter().all(|name| keys.iter().any(|key| key.name == *name));
            assert!(places.iter().any(|keys| has_all(&keys)), "{group:?}");
        }
        assert!(and_siblings("CPUs").eq(["CPUs", "Procs", "Cores"]) && and_siblings("Gres").eq(["Gres"]));
    }
}
