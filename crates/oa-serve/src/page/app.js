// The page: opens conversations, applies events to their state, and renders the state once per frame.

import { Announcer } from "./announcer.js";
import * as api from "./api.js";
import { Composer } from "./composer.js";
import { callsWithoutResult, empty, load, reduce, waitingCalls } from "./conversation.js";
import { askToken, showShortcuts } from "./dialogs.js";
import * as draft from "./draft.js";
import { element, setText } from "./element.js";
import { Feed } from "./feed.js";
import { Meters } from "./meters.js";
import { Scroller } from "./scroller.js";
import { Drawer, Sidebar } from "./sidebar.js";
import * as theme from "./theme.js";
import { Transcript } from "./transcript.js";

const find = (id) => document.getElementById(id);

class App {
  #agent = { name: "Agent", model: "", tools: [], context_window: null };
  #state = empty();
  #feed = null;
  #link = "connecting";
  #opened = 0; // counts opened and shown conversations, to detect late responses for another one
  #gapAt = null; // the conversation and the event after which the last gap was
  #isPartial = false; // events of the run in progress are lost
  #isLive = false;
  #isScheduled = false;
  #asking = null;
  #reconnecting = null;
  #transcript = null;
  #announcer = new Announcer(find("announcer"));
  #meters = new Meters(find("status"));
  #scroller = new Scroller(find("scroll"), find("to-end"));
  #drawer = new Drawer(find("sidebar"), find("menu"), find("backdrop"));
  #composer = new Composer(find("composer"), {
    prompt: (text, urls) => this.#prompt(text, urls),
    steer: (text) => this.#steer(text),
    stop: () => this.#stop(),
  });
  #sidebar = new Sidebar(find("sidebar"), {
    chosen: () => this.#drawer.close(),
    renamed: (id, title) => id === this.#state.id && this.#setTitle(title),
    deleted: (id) => {
      draft.remove(id);
      if (id === this.#state.id) this.#replaceWithNew();
    },
    failed: (error) => this.#fail(error),
    read: () => this.#composer.reconnected(),
  });
  #actions = {
    approve: (callId, input) => this.#answer(callId, { answer: "approved" }, () => api.approve(this.#state.id, callId, input)),
    deny: (callId, reason) => this.#answer(callId, { answer: "denied" }, () => api.deny(this.#state.id, callId, reason)),
    result: (callId, content, isError) =>
      this.#answer(callId, { answer: "result", content, is_error: isError }, () => api.result(this.#state.id, callId, content, isError)),
    answered: () => this.#composer.focus(),
  };

  async start() {
    api.takeToken();
    theme.attach(find("theme"));
    find("new").addEventListener("click", () => this.#startNew());
    find("shortcuts").addEventListener("click", showShortcuts);
    find("take-back").addEventListener("click", () => this.#takeBack());
    find("skip").addEventListener("click", (event) => {
      event.preventDefault();
      this.#composer.focus();
    });
    document.addEventListener("keydown", (event) => this.#onKey(event));
    document.addEventListener("announce", (event) => this.#announcer.say(event.detail));
    document.addEventListener("visibilitychange", () => !document.hidden && this.#sidebar.refresh());
    addEventListener("hashchange", () => this.#open(idInAddress()));
    this.#composer.open(idInAddress());
    await this.#connect();
  }

  async #connect() {
    for (;;) {
      try {
        this.#agent = await api.agent();
        break;
      } catch (error) {
        if (error.status === 401) {
          await this.#askToken();
        } else {
          this.#composer.report(error.message);
          await new Promise((resolve) => setTimeout(resolve, 2000));
        }
      }
    }
    setText(find("agent-name"), this.#agent.name);
    setText(find("agent-model"), this.#agent.model ?? "");
    this.#composer.report("");
    // A message may have been sent before the server described the agent; its conversation is open already.
    const isOpen = this.#feed !== null && this.#state.id === idInAddress();
    await Promise.all([this.#sidebar.refresh(), isOpen ? null : this.#open(idInAddress())]);
    // The user may have moved the focus meanwhile.
    if (document.activeElement === document.body) this.#composer.focus();
  }

  /** Asks for the token, once for all requests that were refused meanwhile. */
  #askToken() {
    this.#asking ??= askToken("This server asks for its access token.").then((token) => {
      this.#asking = null;
      api.setToken(token);
    });
    return this.#asking;
  }

  /** Opens a conversation; null is a new one, which is created with its first message. */
  async #open(id) {
    this.#opened += 1;
    const opened = this.#opened;
    this.#feed?.close();
    this.#feed = null;
    this.#sidebar.select(id);
    if (id === null) {
      this.#show(empty());
      return;
    }
    try {
      const stored = await api.conversation(id);
      if (opened !== this.#opened) return;
      this.#composer.reconnected();
      this.#follow(load(stored));
    } catch (error) {
      if (opened !== this.#opened) return;
      if (error.status === 404) {
        this.#replaceWithNew(id);
        this.#composer.report("This conversation no longer exists.");
      } else if (error.status === 401) {
        await this.#askToken();
        this.#open(id);
      } else {
        this.#composer.report(error.message, { isPassing: true });
        setTimeout(() => opened === this.#opened && this.#open(id), 2000);
      }
    }
  }

  /** Shows a state and reads the events that follow. */
  #follow(state) {
    this.#feed?.close();
    this.#isPartial = false;
    this.#show(state);
    this.#feed = new Feed(state.id, state.lastEvent, {
      event: (input) => this.#take(input),
      state: (link) => this.#setLink(link),
      refused: (error) => this.#refused(error),
      isIdle: () => this.#state.run === null,
    });
  }

  #setLink(link) {
    const wasLost = this.#link === "lost";
    this.#link = link;
    if (link === "open") this.#composer.reconnected();
    if (link === "lost" && !wasLost) this.#announcer.say("Connection lost. Reconnecting.");
    if (link === "open" && wasLost) this.#announcer.say("Connected again.");
    this.#schedule();
  }

  #show(state) {
    this.#composer.open(state.id);
    this.#state = state;
    this.#link = "open";
    this.#transcript = new Transcript(this.#actions);
    this.#isLive = false;
    find("transcript").replaceChildren(state.id === null ? this.#welcome() : this.#transcript.element);
    this.#announcer.reset(state);
    this.#setTitle(state.title);
    this.#render();
    this.#isLive = true;
    if (state.id === null) this.#scroller.toStart();
    else this.#scroller.toEnd();
    this.#opened += 1;
  }

  #welcome() {
    const { name, tools } = this.#agent;
    // A long list shows only the names.
    const isLong = tools.length > 8;
    const item = (tool) => element(
      "li", isLong ? { title: tool.description } : {},
      element("code", { text: tool.name }),
      isLong || !tool.description ? null : element("span", { text: tool.description }),
    );
    return element(
      "div", { class: "welcome" },
      element("img", { class: "mark", src: "icon.svg", alt: "", width: "52", height: "52" }),
      element("h2", { text: `Ask ${name}` }),
      element("p", { text: tools.length ? "It can use these tools:" : "It has no tools." }),
      tools.length ? element("ul", { class: isLong ? "tools is-long" : "tools", "aria-label": "Tools" }, ...tools.map(item)) : null,
    );
  }

  #take(input) {
    // The conversation is being reloaded, which includes this event.
    if (this.#state.isStale) return;
    if (input.event === "gap") {
      const at = `${this.#state.id} ${this.#state.lastEvent}`;
      // Loading again has not helped: the events that follow are all there is until the next step is stored.
      if (at === this.#gapAt) {
        this.#isPartial = true;
        return;
      }
      this.#gapAt = at;
    }
    const wasRunning = this.#state.run !== null;
    this.#state = reduce(this.#state, input);
    if (this.#state.isStale) {
      this.#open(this.#state.id);
      return;
    }
    if (wasRunning && this.#state.run === null) (this.#isPartial ? this.#readAgain() : this.#readResults()).catch((error) => this.#fail(error));
    if (wasRunning !== (this.#state.run !== null)) {
      this.#sidebar.refresh().then(() => this.#setTitle(this.#sidebar.titleOf(this.#state.id) ?? this.#state.title));
    }
    this.#schedule();
  }

  /** Shows the conversation as it is stored, after a run of which events are lost. */
  async #readAgain() {
    const opened = this.#opened;
    const stored = await api.conversation(this.#state.id);
    // If the run could not be stored, the events are all there is.
    const isStored = `${stored.id} ${stored.last_event}` !== this.#gapAt;
    if (opened === this.#opened && isStored) this.#follow(load(stored));
  }

  async #refused(error) {
    if (error.status === 401) {
      await this.#askToken();
      this.#open(this.#state.id);
    } else if (error.status === 404) {
      this.#replaceWithNew(this.#state.id);
      this.#sidebar.refresh();
      this.#composer.report("This conversation was deleted.");
    } else {
      this.#fail(error);
    }
  }

  #schedule() {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    const render = () => {
      this.#isScheduled = false;
      this.#render();
    };
    // A hidden page gets no animation frames.
    if (document.hidden) setTimeout(render, 200);
    else requestAnimationFrame(render);
  }

  #render() {
    const state = this.#state;
    this.#transcript.update(state.thread, this.#isLive);
    this.#composer.update({ isRunning: state.run !== null, isWaiting: waitingCalls(state).length > 0 });
    this.#meters.update(state, this.#agent.context_window, this.#link);
    this.#announcer.update(state);
    this.#scroller.follow();
    document.body.classList.toggle("is-running", state.run !== null);
  }

  async #prompt(text, urls) {
    // Until the first conversation is shown, the message belongs to the one in the address.
    const id = this.#transcript ? this.#state.id : idInAddress();
    await this.#promptTo(id ?? (await this.#create()), text, urls);
  }

  /** Creates the conversation of its first message. If the user has opened another one meanwhile, that one stays. */
  async #create() {
    const { id } = await api.create();
    if (this.#state.id !== null || idInAddress() !== null) return id;
    this.#composer.begin(id);
    this.#state = { ...this.#state, id };
    this.#follow(empty(id));
    history.pushState(null, "", `${location.pathname}#${encodeURIComponent(id)}`);
    this.#sidebar.select(id);
    return id;
  }

  async #promptTo(id, text, urls) {
    const isShown = id === this.#state.id;
    if (isShown) this.#scroller.toEnd();
    await api.prompt(id, text, urls);
    if (!isShown) this.#sidebar.refresh();
  }

  async #steer(text) {
    // The message belongs to this conversation, also if another one is open when the answer arrives.
    const { id } = this.#state;
    // Before the request, because the event that the model has read it comes on another connection, maybe earlier.
    this.#take({ event: "steer", data: { text } });
    try {
      await api.steer(id, text);
    } catch (error) {
      if (id === this.#state.id) this.#take({ event: "unsteer", data: { text } });
      // The run has ended in between, so send the text as the next prompt.
      if (error.status !== 409) throw error;
      await this.#promptTo(id, text, []);
    }
  }

  /** Moves steered messages that the model has not read back into the composer. */
  async #takeBack() {
    const { id, steering } = this.#state;
    try {
      const { messages } = await api.takeSteered(id);
      // If another viewer was faster or the server has forgotten the messages, use the local copy.
      const text = (messages.length ? messages : steering).join("\n\n");
      if (id === this.#state.id) {
        this.#take({ event: "taken", data: {} });
        this.#composer.putBack(text);
      } else {
        draft.putBack(id, text);
      }
    } catch (error) {
      this.#fail(error);
    }
  }

  async #stop() {
    try {
      await api.stop(this.#state.id);
    } catch (error) {
      this.#fail(error);
    }
  }

  async #answer(callId, data, send) {
    const { id } = this.#state;
    try {
      await send();
    } catch (error) {
      // Another viewer was faster. The events bring the answer, unless that viewer uses another server.
      if (error.status !== 404 && error.status !== 409) throw error;
      if (id === this.#state.id && waitingCalls(this.#state).some((call) => call.callId === callId)) this.#open(id);
      return;
    }
    if (id === this.#state.id) this.#take({ event: "answered", data: { call_id: callId, ...data } });
  }

  /** Loads the results that other viewers entered. */
  async #readResults() {
    const opened = this.#opened;
    const missing = new Set(callsWithoutResult(this.#state).map((call) => call.callId));
    if (!missing.size) return;
    const { messages } = await api.conversation(this.#state.id);
    if (opened !== this.#opened) return;
    for (const block of messages.flatMap((message) => message.content)) {
      if (block.type === "tool_result" && missing.has(block.tool_use_id)) this.#take({ event: "agent", data: { type: "block", data: block } });
    }
  }

  #startNew() {
    this.#goTo(null);
    this.#drawer.close();
    this.#composer.focus();
  }

  #goTo(id) {
    history.pushState(null, "", id === null ? location.pathname : `${location.pathname}#${encodeURIComponent(id)}`);
    this.#open(id);
  }

  /**
   * Shows a new conversation in the place of one that is gone, which leaves no entry in the history. The draft of the
   * conversation `from` is kept.
   */
  #replaceWithNew(from = null) {
    if (from !== null) draft.move(from, null);
    history.replaceState(null, "", location.pathname);
    this.#open(null);
  }

  #setTitle(title) {
    const shown = this.#state.id === null ? "New conversation" : title || "New conversation";
    setText(find("title"), shown);
    document.title = `${shown} · ${this.#agent.name}`;
  }

  #fail(error) {
    if (error.status !== 401) {
      this.#composer.report(error.message, { isPassing: error.status === 0 });
      return;
    }
    this.#reconnecting ??= this.#askToken().then(() => {
      this.#reconnecting = null;
      return this.#connect();
    });
  }

  #onKey(event) {
    // An input method uses the key itself, such as Esc to drop what it composes.
    if (event.isComposing || event.keyCode === 229) return;
    const isCommand = event.ctrlKey || event.metaKey;
    if (document.querySelector("dialog[open]")) return;
    if (event.key === "Escape" && event.shiftKey) this.#composer.focus();
    else if (event.key === "Escape" && this.#state.run) this.#stop();
    else if (isCommand && event.shiftKey && event.code === "KeyO") this.#startNew();
    else if (isCommand && event.shiftKey && event.code === "KeyS") this.#drawer.toggle();
    else if (isCommand && event.key === "/") showShortcuts();
    else if (isCommand && event.key === ".") this.#nextQuestion();
    else return;
    event.preventDefault();
  }

  #nextQuestion() {
    const questions = [...document.querySelectorAll("[data-question]")];
    const current = questions.indexOf(document.activeElement);
    questions[(current + 1) % questions.length]?.focus();
  }
}

function idInAddress() {
  const { hash } = location;
  // The link to the message box works before this script does.
  if (hash === "" || hash === find("skip").hash) return null;
  try {
    return decodeURIComponent(hash.slice(1));
  } catch {
    return hash.slice(1);
  }
}

new App().start();
