//! What this crate says of Slurm, held against real Slurm of each release that there is.

use testkit::cache::SlurmVersion;

#[path = "slurm/conf.rs"]
mod conf;
#[path = "slurm/hostlist.rs"]
mod hostlist;
#[path = "slurm/units.rs"]
mod units;

/// One test for each release from one function.
macro_rules! on_each_release {
    ($($module:ident::$test:ident),* $(,)?) => {
        mod v24_11 {
            $(#[test] fn $test() -> anyhow::Result<()> {
                testkit::run(super::$module::$test(super::SlurmVersion::V24_11))
            })*
        }
        mod v26_05 {
            $(#[test] fn $test() -> anyhow::Result<()> {
                testkit::run(super::$module::$test(super::SlurmVersion::V26_05))
            })*
        }
    };
}

on_each_release![
    conf::each_shape_of_slurm_conf_is_loaded_and_shown,
    conf::nodes_partitions_and_devices_are_as_written,
    conf::topologies_are_loaded,
    conf::slurmctld_shows_cgroup_conf_and_slurmd_misses_the_cgroups_it_names,
    conf::mpi_conf_is_shown_by_the_build_that_has_pmix,
    conf::plugins_and_private_folders_are_loaded,
    conf::a_node_that_makes_itself_known_has_what_it_was_given,
    conf::slurmdbd_gets_an_awkward_password_and_all_else_as_it_is,
    conf::values_are_read_back_as_they_were_given,
    conf::values_on_lines_with_several_keys_are_read_back,
    conf::faults_are_those_that_slurm_finds,
    conf::broken_times_and_host_lists_are_found,
    conf::what_ends_slurmctld_within_one_text_is_found,
    conf::nodes_begin_in_the_states_that_are_let_through,
    conf::names_that_would_end_or_be_lost_are_guarded,
    conf::a_users_lines_win,
    conf::each_release_knows_the_keys_that_the_tables_say,
    conf::every_key_that_is_shown_is_in_the_tables,
    conf::what_this_build_lacks_is_refused,
    hostlist::random_lists_agree_with_scontrol,
    hostlist::white_space_separates_as_in_scontrol,
    hostlist::lists_that_slurm_misreads_are_refused,
    hostlist::what_scontrol_sorts_away_stays,
    units::time_limits_mean_what_they_mean_to_slurm,
];
