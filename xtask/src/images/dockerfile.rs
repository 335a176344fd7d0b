//! Keeps `images/Dockerfile` and our own builder together: the same images, from the same layers, with the same files.
//! It is read, and its commands that gather our files are run, without Docker, which not every machine has.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use testkit::cache::SlurmVersion;
use testkit::images::{IMAGES, Image, Ours};
use testkit::layers::Layer;

use super::programs::{PLUGIN, PROGRAMS, Programs, STATIC};
use super::stage;
use crate::workspace;

const DEBIAN: &str = "debian:${SUITE}-slim";
/// What the image of Debian runs, and whoever builds on it, if nothing is said.
const DEBIAN_CMD: &str = "bash";
const SCRATCH: &str = "scratch";
/// Stages that are in no image.
const RECIPES: &str = "recipes";
const COMPILED: &str = "programs";
const OURS: &str = "ours";
const ROOTFS_MOUNT: &str = "--mount=type=bind,source=images/rootfs,target=/srv";
/// What only the scripts of layers call.
const INSTALLERS: [&str; 3] = ["apt", "apt-get", "dpkg"];

struct Dockerfile {
    /// Before the first stage.
    head: Vec<Step>,
    stages: Vec<Stage>,
}

struct Stage {
    name: String,
    from: String,
    steps: Vec<Step>,
}

struct Step {
    keyword: String,
    rest: String,
}

impl Step {
    /// Without the flags that come first, such as `--mount=…`.
    fn command(&self) -> &str {
        let mut rest = self.rest.as_str();
        while let Some((flag, after)) = rest.split_once(char::is_whitespace)
            && flag.starts_with("--")
        {
            rest = after.trim_start();
        }
        rest
    }

    fn is(&self, keyword: &str, rest: &str) -> bool {
        self.keyword == keyword && one_line(&self.rest) == rest
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl Dockerfile {
    fn parse(text: &str) -> Result<Self, String> {
        let mut file = Self { head: Vec::new(), stages: Vec::new() };
        let mut open = String::new();
        for line in text.lines().filter(|line| !line.trim().is_empty() && !line.trim().starts_with('#')) {
            if let Some(beginning) = line.strip_suffix('\\') {
                open += beginning;
                continue;
            }
            let instruction = std::mem::take(&mut open) + line;
            let (keyword, rest) =
                instruction.trim().split_once(char::is_whitespace).unwrap_or((&instruction, ""));
            let step = Step { keyword: keyword.to_owned(), rest: rest.trim().to_owned() };
            if step.keyword == "FROM" {
                file.open_stage(&step.rest)?;
            } else {
                file.stages.last_mut().map_or(&mut file.head, |stage| &mut stage.steps).push(step);
            }
        }
        if open.is_empty() { Ok(file) } else { Err(format!("an open line at the end: {open}")) }
    }

    fn open_stage(&mut self, rest: &str) -> Result<(), String> {
        let [from, "AS", name] = rest.split_whitespace().collect::<Vec<_>>()[..] else {
            return Err(format!("`FROM {rest}` is not FROM … AS …"));
        };
        if self.stages.iter().any(|stage| stage.name == name) {
            return Err(format!("two stages {name}"));
        }
        self.stages.push(Stage { name: name.to_owned(), from: from.to_owned(), steps: Vec::new() });
        Ok(())
    }

    fn stage(&self, name: &str) -> Result<&Stage, String> {
        self.stages.iter().find(|stage| stage.name == name).ok_or_else(|| format!("no stage {name}"))
    }

    /// What Docker makes of a stage and those below it.
    fn made(&self, name: &str) -> Result<Made, String> {
        let stage = self.stage(name)?;
        // Docker knows only the stages above: the name of a later one is that of an image in a registry.
        let above = self.stages.iter().take_while(|other| other.name != name);
        let mut made = match above.into_iter().find(|other| other.name == stage.from) {
            Some(parent) => self.made(&parent.name)?,
            None => Made::from(&stage.from).ok_or_else(|| format!("{name}: from {}", stage.from))?,
        };
        if Layer::ALL.iter().any(|layer| layer.name() == name) {
            made.layers.push(name.to_owned());
        }
        let (mut cmd_is_set, mut has_suite) = (false, false);
        for step in &stage.steps {
            match step.keyword.as_str() {
                "ARG" if step.rest == "SUITE" => has_suite = true,
                "RUN" if has_suite => made.runs.push(one_line(&step.rest)),
                "RUN" => return Err(format!("{name}: RUN without ARG SUITE before it")),
                "COPY" => made.copies.push(one_line(&step.rest)),
                "USER" => made.user = step.rest.clone(),
                "CMD" => {
                    cmd_is_set = true;
                    made.cmd = words_of_array(&step.rest)?;
                }
                "ENTRYPOINT" => {
                    made.entrypoint = words_of_array(&step.rest)?;
                    if !cmd_is_set {
                        made.cmd.clear();
                    }
                }
                other => return Err(format!("{name}: {other} {}", step.rest)),
            }
        }
        Ok(made)
    }
}

fn words_of_array(text: &str) -> Result<Vec<String>, String> {
    serde_json::from_str(text).map_err(|_| format!("not an array of words: {text}"))
}

/// All that makes an image what it is, bottom first.
#[derive(Default)]
struct Made {
    from: String,
    layers: Vec<String>,
    runs: Vec<String>,
    copies: Vec<String>,
    entrypoint: Vec<String>,
    cmd: Vec<String>,
    user: String,
}

impl Made {
    /// Nothing but an image from a registry.
    fn from(name: &str) -> Option<Self> {
        let cmd = match name {
            DEBIAN => vec![DEBIAN_CMD.to_owned()],
            SCRATCH => Vec::new(),
            _ => return None,
        };
        Some(Self { from: name.to_owned(), cmd, ..Self::default() })
    }

    fn unlike(self, wanted: &Self) -> impl Iterator<Item = String> {
        let fields = |made: &Self| {
            let Self { from, layers, runs, copies, entrypoint, cmd, user } = made;
            [
                format!("FROM {from}"),
                format!("layers {layers:?}"),
                format!("RUN {runs:?}"),
                format!("COPY {copies:?}"),
                format!("ENTRYPOINT {entrypoint:?}"),
                format!("CMD {cmd:?}"),
                format!("USER {user:?}"),
            ]
        };
        let pairs = fields(&self).into_iter().zip(fields(wanted));
        pairs
            .filter(|(found, wanted)| found != wanted)
            .map(|(found, wanted)| format!("{found}, not {wanted}"))
    }

    fn wanted(image: &Image) -> Self {
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let copy = format!("--from={OURS} /ours/{}/ /", image.ours.name());
        Self {
            from: if image.layers.is_empty() { SCRATCH } else { DEBIAN }.to_owned(),
            layers: image.layers.iter().map(|layer| layer.name().to_owned()).collect(),
            runs: image.layers.iter().map(|layer| run_of(*layer)).collect(),
            copies: if image.ours == Ours::Nothing { Vec::new() } else { vec![copy] },
            entrypoint: owned(image.entrypoint),
            cmd: owned(image.cmd),
            user: image.user.to_owned(),
        }
    }
}

fn run_of(layer: Layer) -> String {
    let script = format!("SUITE=$SUITE bash /srv/layers/{}.sh", layer.name());
    format!("--mount=type=bind,from={RECIPES},target=/srv {script}")
}

/// Everything in which the file is not what our own builder makes.
fn differences(text: &str) -> Vec<String> {
    let file = match Dockerfile::parse(text) {
        Ok(file) => file,
        Err(error) => return vec![error],
    };
    let mut found = Vec::new();
    for image in &IMAGES {
        match file.made(image.name) {
            Ok(made) => {
                found.extend(made.unlike(&Made::wanted(image)).map(|what| format!("{}: {what}", image.name)));
            }
            Err(error) => found.push(error),
        }
    }
    let strangers = file.stages.iter().filter(|stage| !is_known(&stage.name));
    found.extend(strangers.map(|stage| format!("stage {} is of no image", stage.name)));
    found.extend(inputs(&file));
    found.extend(file.stages.iter().flat_map(|stage| &stage.steps).filter_map(packages_in));
    found
}

fn is_known(stage: &str) -> bool {
    let layer = |image: &Image| image.layers.iter().any(|layer| layer.name() == stage);
    let image = IMAGES.iter().any(|image| image.name == stage || layer(image));
    image || [RECIPES, COMPILED, OURS].contains(&stage)
}

/// The suite by default, what layers and programs are made from, and with which compiler.
fn inputs(file: &Dockerfile) -> Vec<String> {
    let mut found = Vec::new();
    let mut expect = |holds: bool, what: &str| {
        if !holds {
            found.push(what.to_owned());
        }
    };
    let suites = SlurmVersion::ALL.map(SlurmVersion::suite);
    let suite = |step: &Step| suites.iter().any(|suite| step.is("ARG", &format!("SUITE={suite}")));
    expect(file.head.len() == 1 && file.head.iter().all(suite), "ARG SUITE with a suite that has Slurm");

    let recipes = file.stage(RECIPES).map_or(&[][..], |stage| &stage.steps);
    let copies = ["images/layers /layers", "images/packages /packages"];
    let same =
        recipes.len() == copies.len() && recipes.iter().zip(copies).all(|(step, copy)| step.is("COPY", copy));
    expect(same, "recipes are images/layers and images/packages");

    let compiled = file.stage(COMPILED).ok();
    let rust = format!("rust:{}-bookworm", env!("CARGO_PKG_RUST_VERSION"));
    expect(compiled.is_some_and(|stage| stage.from == rust), &format!("programs from {rust}"));
    for member in workspace_folders() {
        let copy = format!("{member} {member}");
        let copied = compiled.is_some_and(|stage| stage.steps.iter().any(|step| step.is("COPY", &copy)));
        expect(copied, &format!("programs have no COPY {copy}, a part of the workspace"));
    }

    let ours = file.stage(OURS).ok().filter(|stage| stage.from == COMPILED);
    let (folder, rest) = ours.and_then(|stage| stage.steps.split_first()).unzip();
    expect(folder.is_some_and(|step| step.is("WORKDIR", "/ours")), "our files from programs, in /ours");
    let mounted =
        |step: &Step| !step.command().contains("/srv") || step.rest.starts_with(&format!("{ROOTFS_MOUNT} "));
    expect(rest.is_some_and(|steps| steps.iter().all(mounted)), "our files with images/rootfs at /srv");
    found
}

/// Where the members of the workspace are: cargo reads all of them to build one.
fn workspace_folders() -> Vec<String> {
    let manifest = fs::read_to_string(workspace().join("Cargo.toml")).unwrap();
    let members = manifest.lines().find_map(|line| line.strip_prefix("members = ")).unwrap();
    let members: Vec<String> = serde_json::from_str(members).unwrap();
    members.iter().map(|member| member.trim_end_matches("/*").to_owned()).collect()
}

/// Packages stand in `images/packages` only.
fn packages_in(step: &Step) -> Option<String> {
    if step.keyword != "RUN" || Layer::ALL.iter().any(|layer| step.is("RUN", &run_of(*layer))) {
        return None;
    }
    let packages: Vec<String> = package_lists().into_values().flatten().collect();
    let is_package = |word: &&str| packages.iter().any(|package| package == word);
    let words =
        step.command().split(|character: char| !character.is_alphanumeric() && !"+.-".contains(character));
    let found: Vec<_> = words.filter(|word| is_package(word) || INSTALLERS.contains(word)).collect();
    (!found.is_empty()).then(|| format!("{found:?} in a RUN: packages stand in images/packages only"))
}

/// The lines that are no comment, by the name of the list.
fn package_lists() -> BTreeMap<String, Vec<String>> {
    let folder = fs::read_dir(workspace().join("images/packages")).unwrap();
    let read = |entry: fs::DirEntry| {
        let path = entry.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap();
        let name = name.strip_suffix(".txt").unwrap_or_else(|| panic!("{name} is no list")).to_owned();
        let text = fs::read_to_string(&path).unwrap();
        (name, text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect())
    };
    folder.map(|entry| read(entry.unwrap())).collect()
}

fn dockerfile() -> String {
    fs::read_to_string(workspace().join("images/Dockerfile")).unwrap()
}

#[test]
fn the_dockerfile_makes_the_images_of_our_own_builder() {
    let differences = differences(&dockerfile());
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn a_dockerfile_that_makes_something_else_is_found() {
    let slurm_layer = "SUITE=$SUITE bash /srv/layers/slurm.sh";
    for (from, to, complaint) in [
        ("FROM slurm AS munge", "FROM slurm AS mungo", "no stage munge"),
        ("FROM slurm AS munge", "FROM slurm AS mungo", "stage mungo is of no image"),
        ("slurm/sshd_entrypoint.sh", "slurm/munge_entrypoint.sh", "login_sshd: ENTRYPOINT"),
        // Debian's CMD would become the argument of the entrypoint that is taken away.
        (
            "ENTRYPOINT [\"/usr/bin/tini\", \"--\", \"/opt/bin/slurm/slurmctld_entrypoint.sh\"]\n",
            "",
            "controller_slurmctld: CMD [\"bash\"]",
        ),
        ("CMD [\"/bin/bash\"]\n", "", "jail: CMD [\"bash\"]"),
        ("CMD [\"operator\"]", "CMD operator", "not an array"),
        ("USER 65532:65532\n", "", "slipway: USER"),
        ("FROM slurm AS session\n", "FROM slurm AS session\nUSER 1000\n", "worker_slurmd: USER"),
        ("FROM session AS login_sshd", "FROM slurm AS login_sshd", "login_sshd: layers"),
        ("FROM slurm AS session\nARG SUITE\n", "FROM slurm AS session\n", "session: RUN without ARG SUITE"),
        ("AS slurm\nARG SUITE\n", "AS slurm\nARG SUITE=trixie\n", "slurm: ARG SUITE=trixie"),
        ("ARG SUITE=forky", "ARG SUITE=bookworm", "ARG SUITE with a suite"),
        ("FROM base AS slurm", "FROM debian:sid AS slurm", "slurm: from debian:sid"),
        (slurm_layer, "SUITE=$SUITE bash /srv/layers/jail.sh", "munge: RUN"),
        (slurm_layer, "SUITE=$SUITE bash /srv/layers/slurm.sh && apt-get install htop", "\"apt-get\""),
        ("CMD [\"/bin/bash\"]", "RUN install nano\nCMD [\"/bin/bash\"]", "[\"nano\"] in a RUN"),
        ("CMD [\"/bin/bash\"]", "ADD htop.deb /\nCMD [\"/bin/bash\"]", "jail: ADD htop.deb"),
        ("mkdir /programs", "install curl && mkdir /programs", "[\"curl\"] in a RUN"),
        ("COPY --from=ours /ours/node/ /\n", "", "slipway-node: COPY"),
        ("/ours/populate/ /", "/ours/slurm/ /", "populate_jail: COPY"),
        ("COPY images/packages /packages\n", "", "recipes are"),
        ("COPY xtask xtask\n", "", "no COPY xtask xtask"),
        ("FROM rust:", "FROM rust:0.", "programs from rust:"),
        ("FROM programs AS ours", "FROM rust AS ours", "our files from programs"),
        ("WORKDIR /ours\n", "", "our files from programs, in /ours"),
        ("source=images/rootfs", "source=images", "our files with images/rootfs"),
        ("FROM base AS jail", "FROM base AS mariadb", "two stages mariadb"),
        ("CMD [\"rebooter\"]", "CMD [\"rebooter\"] \\", "an open line"),
    ] {
        assert!(dockerfile().contains(from), "the Dockerfile has no `{from}`");
        let differences = differences(&dockerfile().replacen(from, to, 1));
        let found = differences.iter().any(|difference| difference.contains(complaint));
        assert!(found, "`{from}` changed to `{to}`: {differences:#?}");
    }
}

/// Runs what the stages that gather our files run, with a cargo that only writes down how it was called.
fn gather_as_docker_would(work: &Path) -> String {
    let file = Dockerfile::parse(&dockerfile()).unwrap();
    let cargo = r#"#!/bin/sh
echo "$RUSTFLAGS: $*" >> "$WORK/calls"
folder=target/release
while [ $# -gt 0 ]; do if [ "$1" = --target ]; then folder=target/$2/release; fi; shift; done
mkdir -p "$folder"
if [ -n "$RUSTFLAGS" ]; then echo slipway > "$folder/slipway"; echo slipway-node > "$folder/slipway-node"
else echo libchroot.so > "$folder/libchroot.so"; fi
"#;
    for folder in ["bin", COMPILED, OURS] {
        fs::create_dir(work.join(folder)).unwrap();
    }
    fs::write(work.join("bin/cargo"), cargo).unwrap();
    fs::set_permissions(work.join("bin/cargo"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", work.join("bin").display(), std::env::var("PATH").unwrap());
    for stage in [COMPILED, OURS] {
        for step in file.stage(stage).unwrap().steps.iter().filter(|step| step.keyword == "RUN") {
            let script = step.command().replace("/srv", "$ROOTFS").replace("/programs", "$WORK/out");
            let mut shell = Command::new("sh");
            shell.args(["-c", &script]).current_dir(work.join(stage)).env("PATH", &path).env("WORK", work);
            shell.env("ROOTFS", workspace().join("images/rootfs")).env_remove("RUSTFLAGS");
            assert!(shell.status().unwrap().success(), "{script}");
        }
    }
    fs::read_to_string(work.join("calls")).unwrap()
}

#[test]
fn the_dockerfile_compiles_and_puts_what_our_own_builder_does() {
    let work = tempfile::tempdir().unwrap();
    let calls = gather_as_docker_would(work.path());
    let triple = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let (programs, plugin) = (PROGRAMS.join(" "), PLUGIN.join(" "));
    assert_eq!(
        calls,
        format!(
            "{STATIC}: build --release --locked --target {triple} {programs}\n: build --release --locked {plugin}\n"
        )
    );

    let out = work.path().join("out");
    let programs = Programs {
        slipway: out.join("slipway"),
        slipway_node: out.join("slipway-node"),
        plugin: out.join("libchroot.so"),
    };
    for ours in Ours::ALL.into_iter().filter(|ours| *ours != Ours::Nothing) {
        let root = work.path().join("stage").join(ours.name());
        stage::gather(ours, &programs, &root).unwrap();
        let (wanted, found) = (tree(&root), tree(&work.path().join(OURS).join(ours.name())));
        assert!(!wanted.is_empty());
        let names: Vec<_> = wanted.keys().chain(found.keys()).collect();
        let differ: Vec<_> = names.into_iter().filter(|name| wanted.get(*name) != found.get(*name)).collect();
        assert!(differ.is_empty(), "the Dockerfile has other files for {}: {differ:?}", ours.name());
    }
}

/// Every file with its mode and content, every link with where it leads.
fn tree(root: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let metadata = path.symlink_metadata().unwrap();
            if metadata.is_dir() {
                folders.push(path);
                continue;
            }
            let content = if metadata.is_symlink() {
                fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()
            } else {
                fs::read(&path).unwrap()
            };
            let name = path.strip_prefix(root).unwrap().to_owned();
            found.insert(name, (metadata.permissions().mode(), content));
        }
    }
    found
}

#[test]
fn package_lists_are_sorted_and_each_is_installed_by_a_layer() {
    let lists = package_lists();
    assert!(lists.len() >= 5, "{lists:?}");
    for (name, packages) in &lists {
        assert!(!packages.is_empty(), "{name} is empty");
        // The layers hand every line to apt as it is.
        let plain = |line: &String| {
            !line.is_empty() && line.chars().all(|c| c.is_alphanumeric() || "+.-".contains(c))
        };
        assert!(packages.iter().all(plain), "{name} has a line that is no package: {packages:?}");
        assert!(
            packages.is_sorted_by(|one, next| one < next),
            "{name} is not sorted, or names one twice: {packages:?}"
        );

        let suites = SlurmVersion::ALL.map(SlurmVersion::suite);
        let of_suite = name.rsplit_once('-').filter(|(_, suite)| suites.contains(suite));
        let layer = of_suite.map_or(name.as_str(), |(layer, _)| layer);
        assert!(Layer::ALL.iter().any(|known| known.name() == layer), "{name} belongs to no layer");
        let script = workspace().join(format!("images/layers/{layer}.sh"));
        let installed = format!("install_packages {layer}");
        assert!(
            fs::read_to_string(&script).unwrap().lines().any(|line| line == installed),
            "{} does not install {name}",
            script.display()
        );
    }
}
