//! The one binary: everything is in the library's `cli` room.

fn main() -> std::process::ExitCode {
    slicer_ai_agent::cli::main()
}
