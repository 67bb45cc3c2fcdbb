//! A terminal with the program in it.

use std::io::{Read, Write};
use std::process::{Child, ExitStatus};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use pty_process::Size;
use pty_process::blocking::{Command, Pty, open};

use crate::program::{Home, PROGRAM};

/// The program in a terminal of its own, whose screen a test can look at.
pub(crate) struct Terminal {
    pty: Arc<Pty>,
    screen: Arc<Mutex<vt100::Parser>>,
    /// Everything that was written.
    written: Arc<Mutex<Vec<u8>>>,
    /// The mode of the terminal before the program was in it.
    pub(crate) first_mode: String,
    first: rustix::termios::Termios,
    child: Child,
    /// Ends with the last program in the terminal.
    reader: JoinHandle<()>,
}

/// The pictures of something that runs.
const RUNS: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

/// The longest wait for anything: a loaded machine is slow.
const LONGEST: Duration = Duration::from_secs(30);

impl Terminal {
    pub(crate) fn start(home: &Home, arguments: &[&str]) -> Self {
        Self::start_sized(home, arguments, 24, 80)
    }

    pub(crate) fn start_sized(home: &Home, arguments: &[&str], rows: u16, columns: u16) -> Self {
        Self::spawn(home, arguments, &[], (rows, columns))
    }

    /// Starts the program with more variables than it has otherwise.
    pub(crate) fn start_with(
        home: &Home,
        arguments: &[&str],
        variables: &[(String, String)],
    ) -> Self {
        Self::spawn(home, arguments, variables, (24, 80))
    }

    /// Starts a script in a shell that suspends and continues programs. `$0` is the program.
    pub(crate) fn start_script(home: &Home, script: &str) -> Self {
        let shell = Command::new("/bin/sh").args(["-m", "-c", script, PROGRAM]);
        Self::spawn_command(home, shell, &[], (40, 80))
    }

    fn spawn(
        home: &Home,
        arguments: &[&str],
        variables: &[(String, String)],
        size: (u16, u16),
    ) -> Self {
        Self::spawn_command(home, Command::new(PROGRAM).args(arguments), variables, size)
    }

    fn spawn_command(
        home: &Home,
        command: Command,
        variables: &[(String, String)],
        (rows, columns): (u16, u16),
    ) -> Self {
        let (pty, pts) = open().expect("a terminal");
        pty.resize(Size::new(rows, columns)).expect("a size");
        let first_mode = mode_of(&pty);
        let first = rustix::termios::tcgetattr(&pty).expect("a terminal");
        let child = command
            .env_clear()
            .envs(home.variables())
            .envs(variables.iter().map(|(name, value)| (name, value)))
            .current_dir(home.path())
            .spawn(pts)
            .expect("the program starts");
        let pty = Arc::new(pty);
        // A terminal without a size, such as one of a build server, is shown in the usual one.
        let (rows, columns) = if rows == 0 { (24, 80) } else { (rows, columns) };
        let screen = Arc::new(Mutex::new(vt100::Parser::new(rows, columns, 2_000)));
        let written = Arc::new(Mutex::new(Vec::new()));
        let (reads, shows, keeps) = (Arc::clone(&pty), Arc::clone(&screen), Arc::clone(&written));
        let reader = thread::spawn(move || read(&reads, &shows, &keeps));
        Self { pty, screen, written, first_mode, first, child, reader }
    }

    /// Types bytes.
    pub(crate) fn type_keys(&self, keys: &str) {
        (&*self.pty).write_all(keys.as_bytes()).expect("the terminal takes keys");
    }

    /// Pastes a text, as terminals do that bracket it.
    pub(crate) fn paste(&self, text: &str) {
        self.type_keys(&format!("\x1b[200~{text}\x1b[201~"));
    }

    pub(crate) fn resize(&self, rows: u16, columns: u16) {
        self.lock().screen_mut().set_size(rows, columns);
        self.pty.resize(Size::new(rows, columns)).expect("a size");
    }

    /// Returns the text of the screen, without spaces at the ends of rows.
    pub(crate) fn text(&self) -> String {
        let parser = self.lock();
        let screen = parser.screen();
        let rows: Vec<_> =
            screen.rows(0, screen.size().1).map(|row| row.trim_end().to_owned()).collect();
        rows.join("\n").trim_end().to_owned()
    }

    /// Returns the row that has this text, and the cell at its beginning.
    pub(crate) fn cell_at(&self, text: &str) -> vt100::Cell {
        let parser = self.lock();
        let screen = parser.screen();
        for (row, line) in screen.rows(0, screen.size().1).enumerate() {
            if let Some(at) = line.find(text) {
                let column = line[..at].chars().count();
                let cell = screen.cell(row as u16, column as u16);
                return cell.cloned().expect("a cell of the screen");
            }
        }
        panic!("{text:?} is not on the screen:\n{}", screen.contents());
    }

    /// Returns everything that was written so far.
    pub(crate) fn written(&self) -> String {
        let written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&written).into_owned()
    }

    /// Waits until the screen shows what is wanted.
    #[track_caller]
    pub(crate) fn wait_for(&self, wanted: &str) {
        self.wait_until(&format!("{wanted:?}"), |text| text.contains(wanted));
    }

    #[track_caller]
    pub(crate) fn wait_until(&self, what: &str, is_there: impl Fn(&str) -> bool) {
        let began = Instant::now();
        loop {
            let text = self.text();
            if is_there(&text) {
                return;
            }
            if began.elapsed() > LONGEST {
                panic!("waited for {what}, and the screen shows:\n{text}");
            }
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Waits until the prompt is empty and ready.
    #[track_caller]
    pub(crate) fn wait_for_prompt(&self) {
        self.wait_until("the prompt", |text| {
            !text.contains(RUNS) && text.lines().last().is_some_and(|line| line.trim_end() == "›")
        });
    }

    /// Waits for the end of the program.
    #[track_caller]
    pub(crate) fn wait_for_end(&mut self) -> ExitStatus {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("the program is ours") {
                // The last of what it wrote may still be on its way.
                let ended = Instant::now();
                while !self.reader.is_finished() && ended.elapsed() < Duration::from_secs(2) {
                    thread::sleep(Duration::from_millis(1));
                }
                return status;
            }
            assert!(began.elapsed() < LONGEST, "the program goes on:\n{}", self.text());
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Sets the mode before the program, as a shell does when the program has stopped.
    pub(crate) fn set_first_mode(&self) {
        let now = rustix::termios::OptionalActions::Now;
        rustix::termios::tcsetattr(&*self.pty, now, &self.first).expect("a terminal");
    }

    /// Returns the mode of the terminal, in words that can be compared.
    pub(crate) fn mode(&self) -> String {
        mode_of(&self.pty)
    }

    /// Waits until this is the end of what was written: the last of it may still be on its way when the program has ended.
    #[track_caller]
    pub(crate) fn wait_for_last(&self, wanted: &str) {
        let began = Instant::now();
        while !self.written().ends_with(wanted) {
            assert!(began.elapsed() < LONGEST, "{wanted:?} is not the end of {:?}", self.written());
            thread::sleep(Duration::from_millis(1));
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, vt100::Parser> {
        self.screen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn mode_of(pty: &Pty) -> String {
    format!("{:?}", rustix::termios::tcgetattr(pty).expect("a terminal"))
}

/// The question of a program where the cursor is, which a terminal answers.
const WHERE: &[u8] = b"\x1b[6n";

fn read(mut pty: &Pty, screen: &Mutex<vt100::Parser>, written: &Mutex<Vec<u8>>) {
    let mut buffer = [0; 4096];
    let mut asked = 0;
    while let Ok(count @ 1..) = pty.read(&mut buffer) {
        let mut written = written.lock().unwrap_or_else(PoisonError::into_inner);
        for byte in &buffer[..count] {
            written.push(*byte);
            let at = {
                let mut screen = screen.lock().unwrap_or_else(PoisonError::into_inner);
                screen.process(&[*byte]);
                screen.screen().cursor_position()
            };
            if written.ends_with(WHERE) && written.len() > asked {
                asked = written.len();
                let _ = pty.write_all(format!("\x1b[{};{}R", at.0 + 1, at.1 + 1).as_bytes());
            }
        }
    }
}
