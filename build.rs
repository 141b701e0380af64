//! Makes cargo notice changes in `resources/`, which is embedded as a folder and so not seen by the compiler file by file.

fn main() {
    println!("cargo:rerun-if-changed=resources");
}
