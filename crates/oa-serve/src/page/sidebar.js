// The list of conversations.

import * as api from "./api.js";
import { confirm } from "./dialogs.js";
import { element, iconButton, setAttribute } from "./element.js";
import { ago } from "./figure.js";

const UNTITLED = "New conversation";

export class Sidebar {
  #list;
  #new;
  #more;
  #conversations = [];
  #next = null;
  #current = null;
  #editing = null;
  #reads = 0; // counts loads, so that a late response does not replace a newer one
  #handlers;

  /** Handlers: `renamed(id, title)`, `deleted(id)`, `failed(error)`, `chosen()`, and `read()` when the list has been read. */
  constructor(root, handlers) {
    this.#list = root.querySelector("#conversations");
    this.#new = root.querySelector("#new");
    this.#more = root.querySelector("#more");
    this.#handlers = handlers;
    this.#more.addEventListener("click", () => this.#loadMore());
  }

  /** Reloads the first page and keeps the pages opened below it. */
  async refresh() {
    this.#reads += 1;
    const read = this.#reads;
    try {
      const page = await api.conversations();
      this.#handlers.read();
      if (read !== this.#reads) return;
      const fresh = new Set(page.conversations.map((one) => one.id));
      // With more than one page shown, `#next` stays: it continues after the last of them.
      const isPaged = this.#conversations.length > page.conversations.length && page.next;
      const rest = isPaged ? this.#conversations.filter((one) => !fresh.has(one.id)) : [];
      this.#conversations = [...page.conversations, ...rest];
      if (!isPaged) this.#next = page.next;
      this.#show();
    } catch (error) {
      this.#handlers.failed(error);
    }
  }

  select(id) {
    this.#current = id;
    this.#show();
  }

  /** The title in the list; null or undefined if there is none, or the conversation is not in the list. */
  titleOf(id) {
    return this.#conversations.find((one) => one.id === id)?.title;
  }

  async #loadMore() {
    try {
      const page = await api.conversations(this.#next);
      const first = page.conversations[0]?.id;
      const known = new Set(this.#conversations.map((one) => one.id));
      this.#conversations.push(...page.conversations.filter((one) => !known.has(one.id)));
      this.#next = page.next;
      this.#show();
      if (first) this.#focusOn(first, "a");
    } catch (error) {
      this.#handlers.failed(error);
    }
  }

  #focusOn(id, selector) {
    this.#list.querySelector(`[data-id="${CSS.escape(id)}"] ${selector}`)?.focus();
  }

  #show() {
    // Do not rebuild the list while the user edits a title.
    if (this.#editing) return;
    const focused = this.#list.contains(document.activeElement) ? document.activeElement : null;
    const place = focused && { id: focused.closest("li").dataset.id, action: focused.dataset.action };
    const now = Date.now();
    this.#list.replaceChildren(...this.#conversations.map((one) => this.#row(one, now)));
    this.#more.hidden = !this.#next;
    if (place) this.#focusOn(place.id, `[data-action="${place.action}"]`);
  }

  #row(one, now) {
    const title = one.title || UNTITLED;
    const isCurrent = one.id === this.#current;
    const link = element(
      "a",
      {
        href: `${location.pathname}#${encodeURIComponent(one.id)}`, title, "data-action": "open", "aria-current": isCurrent ? "page" : null,
        on: { click: () => this.#handlers.chosen() },
      },
      element("span", { class: "title", text: title }),
      element("span", { class: "when", text: one.running ? "working" : ago(one.updated_at, now) }),
    );
    return element(
      "li", { "data-id": one.id, class: one.running ? "is-running" : null },
      link,
      iconButton("edit", `Rename ${title}`, () => this.#rename(one), { "data-action": "rename" }),
      iconButton("trash", `Delete ${title}`, () => this.#delete(one), { "data-action": "delete" }),
    );
  }

  #rename(one) {
    const row = this.#list.querySelector(`[data-id="${CSS.escape(one.id)}"]`);
    const input = element("input", { type: "text", "aria-label": "Title", maxlength: "200", class: "rename" });
    input.value = one.title ?? "";
    this.#editing = one.id;
    const end = async (isKept) => {
      // Enter removes the input, and its blur comes here again.
      if (this.#editing !== one.id) return;
      this.#editing = null;
      const title = input.value.trim();
      const hadFocus = document.activeElement === input;
      if (isKept && title && title !== one.title) {
        try {
          await api.rename(one.id, title);
          one.title = title;
          this.#handlers.renamed(one.id, title);
          this.refresh();
        } catch (error) {
          this.#handlers.failed(error);
        }
      }
      this.#show();
      if (hadFocus) this.#focusOn(one.id, '[data-action="rename"]');
    };
    input.addEventListener("keydown", (event) => {
      // An input method uses the key itself.
      if (event.isComposing || event.keyCode === 229) return;
      if (event.key === "Enter") end(true);
      if (event.key === "Escape") {
        event.stopPropagation();
        end(false);
      }
    });
    input.addEventListener("blur", () => end(true));
    row.replaceChildren(input);
    input.focus();
    input.select();
  }

  async #delete(one) {
    const title = one.title || UNTITLED;
    if (!(await confirm(`Delete "${title}"? This cannot be undone.`, "Delete"))) return;
    try {
      await api.remove(one.id);
    } catch (error) {
      if (error.status !== 404) {
        this.#handlers.failed(error);
        return;
      }
    }
    // It may have left the list in between.
    const index = this.#conversations.findIndex((other) => other.id === one.id);
    this.#conversations = this.#conversations.filter((other) => other.id !== one.id);
    this.#show();
    const neighbor = this.#conversations[Math.min(Math.max(index, 0), this.#conversations.length - 1)];
    if (neighbor) this.#focusOn(neighbor.id, "a");
    else this.#new.focus();
    this.#handlers.deleted(one.id);
    this.refresh();
  }
}

/** On narrow screens the list is a drawer. */
export class Drawer {
  #root;
  #button;
  #narrow = matchMedia("(max-width: 859px)");

  constructor(root, button, backdrop) {
    this.#root = root;
    this.#button = button;
    button.addEventListener("click", () => this.toggle());
    backdrop.addEventListener("click", () => this.close());
    root.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && this.#narrow.matches) {
        event.stopPropagation();
        this.close();
        button.focus();
      }
    });
    this.#narrow.addEventListener("change", () => this.#set(!this.#narrow.matches));
    this.#set(!this.#narrow.matches);
  }

  toggle() {
    const isOpen = document.body.dataset.drawer !== "open";
    this.#set(isOpen);
    if (isOpen && this.#narrow.matches) this.#root.querySelector("button, a")?.focus();
    else if (!isOpen) this.#button.focus();
  }

  /** Closes the drawer if it covers the conversation. The focus does not stay in what is hidden. */
  close() {
    if (!this.#narrow.matches) return;
    const hadFocus = this.#root.contains(document.activeElement);
    this.#set(false);
    if (hadFocus) this.#button.focus();
  }

  #set(isOpen) {
    document.body.dataset.drawer = isOpen ? "open" : "closed";
    setAttribute(this.#button, "aria-expanded", String(isOpen));
    this.#root.inert = !isOpen;
    // Content covered by the open drawer must not be reachable.
    document.querySelector("main").inert = isOpen && this.#narrow.matches;
  }
}
