//! What Slurm's loader looks up by name, and the callbacks.
#![allow(unreachable_pub, reason = "looked up by name, from outside")]
#![allow(non_upper_case_globals, reason = "the loader asks for these names")]
#![allow(unsafe_code, reason = "a C interface")]

use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_uint, c_void};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::enter::enter;

const ESPANK_SUCCESS: c_int = 0;
const ESPANK_ERROR: c_int = -1;

#[unsafe(no_mangle)]
pub static plugin_name: [u8; 7] = *b"chroot\0";
#[unsafe(no_mangle)]
pub static plugin_type: [u8; 6] = *b"spank\0";
/// The loader accepts its own release only. Overwritten before it looks.
#[unsafe(no_mangle)]
pub static plugin_version: AtomicU32 = AtomicU32::new(0);
#[unsafe(no_mangle)]
pub static spank_plugin_version: c_uint = 1;

/// As dladdr(3) fills it.
#[repr(C)]
struct DlInfo {
    file: *const c_char,
    base: *mut c_void,
    symbol: *const c_char,
    address: *mut c_void,
}

const RTLD_LAZY: c_int = 1;

unsafe extern "C" {
    fn dladdr(address: *const c_void, info: *mut DlInfo) -> c_int;
    fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(handle: *mut c_void, symbol: *const c_char) -> *mut c_void;
    // Of the program that loads us.
    fn slurm_error(format: *const c_char, ...);
    fn spank_remote(spank: *mut c_void) -> c_int;
}

/// Runs when we are loaded, before Slurm reads `plugin_version`.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = take_version_of_a_neighbour;

extern "C" fn take_version_of_a_neighbour() {
    if let Some(version) = own_path().and_then(|path| version_of(&path.with_file_name("auth_munge.so"))) {
        plugin_version.store(version, Ordering::Relaxed);
    }
}

fn own_path() -> Option<PathBuf> {
    let mut info =
        DlInfo { file: ptr::null(), base: ptr::null_mut(), symbol: ptr::null(), address: ptr::null_mut() };
    // SAFETY: the address is of this library, and dladdr writes the struct that it is given.
    let found = unsafe { dladdr(ptr::from_ref(&plugin_type).cast(), &raw mut info) };
    if found == 0 || info.file.is_null() {
        return None;
    }
    // SAFETY: dladdr gave a string that lives as long as this library is loaded.
    let file = unsafe { CStr::from_ptr(info.file) };
    Some(OsStr::from_bytes(file.to_bytes()).into())
}

/// A library stays loaded: Slurm loads the same one, and a count of one more costs nothing.
fn version_of(library: &Path) -> Option<u32> {
    let library = CString::new(library.as_os_str().to_owned().into_vec()).ok()?;
    // SAFETY: a string with an end; plugins of Slurm have no constructors that could do harm.
    let handle = unsafe { dlopen(library.as_ptr(), RTLD_LAZY) };
    if handle.is_null() {
        return None;
    }
    // SAFETY: a handle from dlopen, and a string with an end.
    let symbol = unsafe { dlsym(handle, c"plugin_version".as_ptr()) }.cast::<c_uint>();
    // SAFETY: every plugin of Slurm has this symbol as a 32-bit number.
    (!symbol.is_null()).then(|| unsafe { *symbol })
}

/// Why this step is not in the jail. A refusal is kept until the tasks start: only then does what we say reach the user,
/// and an error before that would leave srun waiting and drain the node.
static REFUSAL: OnceLock<CString> = OnceLock::new();

/// In slurmstepd: still root, options parsed, and the step's files not yet opened, so that they are opened in the jail.
/// In srun, sbatch and slurmd there is nothing to do.
///
/// # Safety
/// Called by Slurm with its own handle and the words of our line in plugstack.conf.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn slurm_spank_init_post_opt(
    spank: *mut c_void,
    count: c_int,
    words: *const *const c_char,
) -> c_int {
    // SAFETY: the handle that we were given.
    if unsafe { spank_remote(spank) } != 1 {
        return ESPANK_SUCCESS;
    }
    let entered = if count < 1 || words.is_null() {
        Err("no path of a jail in plugstack.conf: write `required chroot.so /mnt/jail`".to_owned())
    } else {
        // SAFETY: `count` words are there, each a string with an end.
        let jail = unsafe { CStr::from_ptr(*words) };
        enter(Path::new(OsStr::from_bytes(jail.to_bytes()))).map_err(|refusal| refusal.to_string())
    };
    if let Err(refusal) = entered {
        let line = CString::new(format!("chroot: {refusal}")).unwrap_or_default();
        complain(REFUSAL.get_or_init(|| line));
    }
    ESPANK_SUCCESS
}

/// In a task, before it becomes the user's: the user's program must not run outside the jail.
///
/// # Safety
/// Called by Slurm.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn slurm_spank_task_init_privileged(
    _spank: *mut c_void,
    _count: c_int,
    _words: *const *const c_char,
) -> c_int {
    match REFUSAL.get() {
        Some(line) => {
            complain(line);
            ESPANK_ERROR
        }
        None => ESPANK_SUCCESS,
    }
}

fn complain(line: &CStr) {
    // SAFETY: one string for the one placeholder.
    unsafe { slurm_error(c"%s".as_ptr(), line.as_ptr()) };
}
