//! The same law with plans of steps, steering, external tools, shortened conversations, sub-agents, and hooks on
//! answers.

use std::sync::Mutex;

use open_agent::{AgentTool, ContextPolicy, Overflow, StepContext};

use super::*;

/// The plan of a request.
#[derive(Clone, Copy, Debug)]
enum Plan {
    End,
    Instructions,
    Model,
    Nothing,
    OnlyAdd,
    Panic,
    Wait,
}

#[derive(Clone, Debug)]
struct Opened {
    plans: Vec<Plan>,
    /// The size of the context, and whether dropped messages are summarized.
    context: Option<(usize, bool)>,
    /// The answers of sub-agents.
    answers: Vec<Answer>,
    keep_steered: bool,
    stops: bool,
}

fn opened() -> impl Strategy<Value = Opened> {
    let rare =
        vec![Plan::End, Plan::Instructions, Plan::Model, Plan::OnlyAdd, Plan::Panic, Plan::Wait];
    let plan = prop_oneof![4 => Just(Plan::Nothing), 2 => prop::sample::select(rare)];
    let context = proptest::option::of((500..4_000_usize, any::<bool>()));
    (vec(plan, 0..8), context, vec(answer(), 1..6), any::<bool>(), 0..5_u8).prop_map(
        |(plans, context, answers, keep_steered, stops)| Opened {
            plans,
            context,
            answers,
            keep_steered,
            stops: stops == 0,
        },
    )
}

/// The prompts that hooks have seen.
type Seen = Arc<Mutex<Vec<String>>>;

fn opened_options(
    options: AgentOptionsBuilder,
    opened: &Opened,
    moods: &Moods,
    seen: &Seen,
) -> AgentOptionsBuilder {
    let ask = tool("ask", "Asks a person").param("a", "number").param("b", "number").external();
    let (plans, next) = (opened.plans.clone(), AtomicUsize::new(0));
    let calm = Arc::clone(&moods.calm);
    let plan = move |step: StepContext| {
        let next = next.fetch_add(1, Ordering::SeqCst);
        let is_calm = calm.load(Ordering::SeqCst) || plans.is_empty();
        let plan = if is_calm { Plan::Nothing } else { plans[next % plans.len()] };
        async move {
            match plan {
                Plan::End => drop(step.end("enough")),
                Plan::Instructions => drop(step.instructions("Hurry.")),
                Plan::Model => drop(step.model("other")),
                Plan::Nothing => {}
                Plan::OnlyAdd => drop(step.only_tools(["add"])),
                Plan::Panic => std::panic::resume_unwind(Box::new("a bug in a plan")),
                Plan::Wait => tokio::time::sleep(TEN).await,
            }
        }
    };
    let (decide, log) = (moods.clone(), Arc::clone(seen));
    let first = Hooks::new().add_user_prompt_submit(move |event| {
        log.lock().expect("no hook panics here").push(event.prompt.clone());
        async { None }
    });
    let hooks = moods.hooks_after(first).try_add_answer(move |_| {
        let decide = decide.decide();
        async move {
            Ok(decide.await?.map(|block| match block {
                true => HookDecision::block("no"),
                false => HookDecision::retry("Not like this."),
            }))
        }
    });
    let hooks = hooks.with_timeout(Duration::from_secs(5));
    let mut options = options.tool(ask).before_step(plan).hooks(hooks);
    if let Some((size, summarize)) = opened.context {
        let overflow = if summarize { Overflow::Summarize } else { Overflow::DropOldest };
        options = options.context(ContextPolicy::new(size).with_overflow(overflow));
    }
    if opened.stops {
        options = options.stop_when(|step| step.last_calls().len() > 1);
    }
    if opened.keep_steered {
        options = options.steer_after_end(open_agent::SteerAfterEnd::Keep);
    }
    let answers = opened.answers.clone();
    let model = Reply::by(move |request| match answers.get(request.number() - 1) {
        Some(answer) => reply(answer),
        None => Reply::text("Helped."),
    });
    let helper = AgentOptions::builder().model("any").auto_execute_tools(true).tool(adder());
    let helper = helper.transport(MemoryServer::new(Script::new().strict().otherwise(model)));
    let helper = helper.build().expect("these options can work");
    options.tool(AgentTool::new("helper", "Helps", helper).expect("a good agent"))
}

/// Checks that every accepted message has entered a turn, where hooks see it like a prompt: at the latest in the
/// undisturbed turn at the end.
fn check_steered(steered: &[String], seen: &Seen) {
    let seen = seen.lock().expect("no hook panics here");
    for words in steered {
        let times = seen.iter().filter(|prompt| *prompt == words).count();
        assert!(times > 0, "{words:?} is lost: {seen:?}");
    }
}

proptest! {
    #![proptest_config(cases(1000))]

    #[test]
    fn clients_survive_with_all_features(
        limits in limits(),
        opened in opened(),
        answers in vec(answer(), 4..16),
        moods in vec(mood(), 0..12),
        acts in vec(act(), 3..30),
    ) {
        let seen = Seen::default();
        let open = |options: AgentOptionsBuilder, moods: &Moods| match limits.auto {
            true => opened_options(options, &opened, moods, &seen),
            false => options.hooks(moods.hooks()),
        };
        let steered = check_law(&limits, answers, moods, &acts, open);
        if limits.auto {
            check_steered(&steered, &seen);
        }
    }
}
