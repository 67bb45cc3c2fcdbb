//! The program `oa`.

use std::process::ExitCode;

fn main() -> ExitCode {
    oa_cli::run()
}
