// Server-sent events from text in pieces. Pure.

const LONGEST_LINE = 64 << 20;

export class EventParser {
  #buffer = [];
  #size = 0;
  #event = "";
  #data = [];
  #id = null;
  #wasReturn = false;

  /** Reads a piece and returns the events that it completes: {event, data, id}. */
  push(piece) {
    const events = [];
    // A return at the end of the piece before has ended its line; the line feed of the pair belongs to it.
    let rest = this.#wasReturn && piece.startsWith("\n") ? piece.slice(1) : piece;
    if (piece !== "") this.#wasReturn = false;
    for (let found = /\r\n|\n|\r/.exec(rest); found; found = /\r\n|\n|\r/.exec(rest)) {
      const end = found.index;
      this.#buffer.push(rest.slice(0, end));
      const line = this.#buffer.join("");
      this.#buffer = [];
      this.#size = 0;
      rest = rest.slice(end + found[0].length);
      if (found[0] === "\r" && rest === "") this.#wasReturn = true;
      const event = this.#line(line);
      if (event) events.push(event);
    }
    if (rest !== "") {
      this.#size += rest.length;
      if (this.#size > LONGEST_LINE) throw new Error("an event from the server is too long");
      // The parts of a long line are joined once, when its end has arrived.
      this.#buffer.push(rest);
    }
    return events;
  }

  #line(line) {
    if (line === "") return this.#dispatch();
    const colon = line.indexOf(":");
    if (colon === 0) return null;
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "data") this.#data.push(value);
    else if (field === "event") this.#event = value;
    else if (field === "id" && !value.includes("\0")) this.#id = value;
    return null;
  }

  #dispatch() {
    // As in the HTML standard, the id stays for later events, and an event without data is none.
    const [event, data] = [this.#event || "message", this.#data];
    this.#event = "";
    this.#data = [];
    return data.length ? { event, data: data.join("\n"), id: this.#id } : null;
  }
}
