// Follows the end of the conversation while the user has scrolled to it.

const NEAR = 48;

export class Scroller {
  #box;
  #button;
  #isAtEnd = true;

  constructor(box, button) {
    this.#box = box;
    this.#button = button;
    box.addEventListener("scroll", () => this.#look(), { passive: true });
    button.addEventListener("click", () => {
      box.focus({ preventScroll: true });
      this.toEnd();
    });
    button.addEventListener("blur", () => this.#look());
    // Images, expanded cards and a phone's keyboard change sizes.
    new ResizeObserver(() => this.follow()).observe(box);
    new ResizeObserver(() => this.follow()).observe(box.firstElementChild);
  }

  #look() {
    this.#isAtEnd = this.#box.scrollHeight - this.#box.scrollTop - this.#box.clientHeight < NEAR;
    // Keep a focused button visible until the focus moves on.
    this.#button.hidden = this.#isAtEnd && document.activeElement !== this.#button;
  }

  follow() {
    if (this.#isAtEnd) this.#box.scrollTop = this.#box.scrollHeight;
    else this.#look();
  }

  toStart() {
    this.#isAtEnd = false;
    this.#box.scrollTop = 0;
    this.#look();
  }

  toEnd() {
    this.#isAtEnd = true;
    this.#button.hidden = true;
    this.#box.scrollTop = this.#box.scrollHeight;
  }
}
