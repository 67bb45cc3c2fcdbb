#!/usr/bin/env python3
"""Write a tiny GGUF model (0.8 MB, under a second) whose weights this script makes up.

No weights are downloaded and nothing is trained. The network is a one-layer "llama" whose
embedding is one-hot (hidden size == vocabulary size) and whose output matrix is a hand-written
table of next-token probabilities, so it behaves as a Markov chain over tokens, with a little
random noise from the attention layer. The text is nonsense, but it is steerable:

* the chat template ends the prompt with a state token: <|say|> starts prose, <|act|> starts a
  <tool_call> block, <think> starts reasoning;
* a steering word in the last user message chooses how often tools are called, see README.md;
* JSON strings are a few short words, numbers a few digits, so grammar-constrained output
  (tool arguments, json_schema) closes early instead of running to the token limit;
* prose ends by itself after a few sentences, and holds multi-byte UTF-8 that is spread over
  several tokens (an emoji of four byte tokens, an accented letter of two).

usage: make_tiny_gguf.py OUT.gguf [--context N] [--broken-calls]
"""
import argparse
import os
import sys

import gguf
import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
FLOOR = -16.0
SEED = 7


def byte_alphabet():
    """The GPT-2 byte-to-unicode table: printable stand-ins for all 256 bytes."""
    keep = list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))
    table, extra = {}, 0
    for b in range(256):
        if b in keep:
            table[b] = chr(b)
        else:
            table[b] = chr(256 + extra)
            extra += 1
    return table


B2U = byte_alphabet()


def enc(text):
    data = text if isinstance(text, bytes) else text.encode("utf-8")
    return "".join(B2U[b] for b in data)


NOUNS = "river lamp garden window engine pocket station harbor mirror ladder".split()
VERBS = "opens finds carries follows paints counts repairs borrows".split()
ADJS = "quiet small green broken early distant gentle".split()
THINK = "perhaps maybe hmm consider first then check again because unless".split()
PLAN = "need lookup call inspect query fetch verify before after".split()
STRS = "paris tokyo amber copper seven north velvet maple".split()
PAIRS = "th he in er an re on at en nd ti es or te of ed is it al ar st to nt ng se ha as ou io le".split()

SPECIAL = [
    # text, gguf token type
    ("<|endoftext|>", gguf.TokenType.CONTROL),
    ("<|im_start|>", gguf.TokenType.CONTROL),
    ("<|im_end|>", gguf.TokenType.CONTROL),
    ("<|say|>", gguf.TokenType.CONTROL),
    ("<|act|>", gguf.TokenType.CONTROL),
    ("<think>", gguf.TokenType.USER_DEFINED),
    ("<think>\n", gguf.TokenType.USER_DEFINED),
    ("</think>", gguf.TokenType.USER_DEFINED),
    ("<tool_call>", gguf.TokenType.USER_DEFINED),
    ("</tool_call>", gguf.TokenType.USER_DEFINED),
    ("<tool_response>", gguf.TokenType.USER_DEFINED),
    ("</tool_response>", gguf.TokenType.USER_DEFINED),
]


def build_vocab(broken):
    tokens, types, ids = [], [], {}

    def add(key, text, kind=gguf.TokenType.NORMAL):
        if text in tokens:
            raise ValueError("token twice: " + text)
        ids[key] = len(tokens)
        tokens.append(text)
        types.append(kind)

    for b in range(256):
        add(("b", b), B2U[b])
    merges = []
    for pair in PAIRS:
        add(("pair", pair), enc(pair))
        merges.append(" ".join(enc(pair)))
    # Words the model can say. They are in no merge rule, so prompts never hold them.
    for word in ["The", "A"] + NOUNS + VERBS + ADJS + THINK + PLAN:
        add(("w", word), enc(" " + word))
    for word in STRS:
        add(("s", word), enc(word))
    add("the", enc(" the"))
    add("cafe", enc(" caf"))
    add("dot", enc(". "))
    add("dots", enc("..."))
    add("open", enc("\n{"))
    add("quote_colon", enc('": '))
    add("go", enc(" go."))
    add("unseen_close", enc("</think>\n"))
    for text, kind in SPECIAL:
        add(text, text.strip() + "-unused" if broken and text.endswith("\n") else text, kind)
    return tokens, types, ids, merges


def build_table(ids, n, rng, broken):
    """log P(next | current), n x n, rows = current token."""
    table = rng.normal(FLOOR, 0.3, size=(n, n))

    def b(char):
        return ids[("b", char if isinstance(char, int) else ord(char))]

    def w(words):
        return [ids[("w", x)] for x in words]

    def goto(current, *groups):
        """groups: (probability, tokens...) shared evenly among the group's tokens."""
        for cur in current if isinstance(current, list) else [current]:
            table[cur] = rng.normal(FLOOR, 0.3, size=n)
            for prob, toks in groups:
                toks = toks if isinstance(toks, list) else [toks]
                for tok in toks:
                    jitter = float(rng.uniform(0.7, 1.3))
                    table[cur, tok] = np.log(prob * jitter / len(toks))

    strs = [ids[("s", x)] for x in STRS]
    digits = [b(c) for c in "123456789"]
    end = ids["<|im_end|>"]

    # Whatever follows a byte we say nothing else about: JSON punctuation and short strings, so
    # that any grammar finds a way to close.
    every = list(range(n))
    goto(every, (0.40, b('"')), (0.10, b("}")), (0.10, b("]")), (0.10, b(",")), (0.05, b(":")),
         (0.10, strs), (0.05, digits), (0.05, b(" ")), (0.001, end))

    # Prose.
    goto(ids["<|say|>"], (1.0, w(["The", "A"])))
    goto(w(["The", "A"]), (0.5, w(ADJS)), (0.5, w(NOUNS)))
    goto(ids["the"], (0.5, w(ADJS)), (0.5, w(NOUNS)))
    goto(w(ADJS), (1.0, w(NOUNS)))
    goto(w(NOUNS), (0.6, w(VERBS)), (0.1, ids["cafe"]), (0.3, ids["dot"]))
    goto(w(VERBS), (1.0, ids["the"]))
    goto(ids["cafe"], (1.0, b(0xC3)))
    goto(b(0xC3), (1.0, b(0xA9)))                       # U+00E9 in two tokens
    goto(b(0xA9), (1.0, ids["dot"]))
    goto(ids["dot"], (0.7, w(["The", "A"])), (0.15, b(0xF0)), (0.15, end))
    goto(b(0xF0), (1.0, b(0x9F)))                       # U+1F642 in four tokens
    goto(b(0x9F), (1.0, b(0x99)))
    goto(b(0x99), (1.0, b(0x82)))
    goto(b(0x82), (1.0, w(["The", "A"])))

    # Reasoning. "<think>" leads to an answer; "<think>\n" (a token of its own) to a tool call:
    # it ends in " go.</think>", and a previous-token attention head (see prev_token_head) tells
    # that "</think>" from the other one.
    goto(ids["<think>"], (1.0, w(THINK)))
    goto(w(THINK), (0.8, w(THINK)), (0.2, ids["dots"]))
    goto(ids["dots"], (0.4, w(THINK)), (0.6, ids["</think>"]))
    goto(ids["</think>"], (1.0, w(["The", "A"])))
    goto(ids["<think>\n"], (1.0, w(PLAN)))
    goto(w(PLAN), (0.85, w(PLAN)), (0.15, ids["go"]))
    goto(ids["go"], (1.0, ids["unseen_close" if broken else "</think>"]))
    goto(ids["unseen_close"], (1.0, ids["<tool_call>"]))

    # Tool calls; more than one in some runs (pick a seed).
    goto(ids["<|act|>"], (1.0, ids["<tool_call>"]))
    goto(ids["<tool_call>"], (1.0, ids["open"]), (0.01, b("\n")), (0.01, b("{")))
    goto(ids["</tool_call>"], (0.6, end), (0.2, b("\n")), (0.2, ids["<tool_call>"]))
    goto(b("\n"), (0.3, ids["<tool_call>"]), (0.3, ids["</tool_call>"]), (0.2, b("{")),
         (0.02, b('"')), (0.1, b("}")), (0.1, b("]")))

    if broken:
        goto(b("\n"), (1.0, w(PLAN)))

    # JSON. After a closing quote the grammar forbids the words, after an opening one the words
    # are far more likely than the punctuation.
    goto([b("{"), ids["open"]], (0.95, b('"')), (0.03, b("}")))
    goto(b("["), (0.7, b('"')), (0.1, digits), (0.1, b("{")), (0.1, b("]")))
    goto(b('"'), (0.98, strs), (0.005, b(":")), (0.004, b(",")), (0.004, b("}")),
         (0.002, b("]")), (0.0001, b("\n")), (0.0001, end))
    goto(strs, (0.60, b('"')), (0.39, b(" ")), (0.01, digits))
    goto([b(":"), b(",")], (0.9, b(" ")), (0.05, b('"')), (0.02, digits))
    goto(b(" "), (0.3, strs), (0.01, b('"')), (0.003, digits), (0.001, b("[")),
         (0.001, b("{")), (0.0003, b("t")), (0.0003, b("f")))
    goto(digits + [b("0")], (0.3, digits), (0.3, b("}")), (0.2, b(",")), (0.2, b("]")),
         (0.02, b(".")), (0.05, end))
    goto([b("}"), b("]")], (0.5, b("}")), (0.15, b("]")), (0.1, b(",")), (0.2, b("\n")),
         (0.3, end), (0.1, ids["</tool_call>"]))
    return table


def prev_token_head(dim, head_dim, base):
    """Query and key weights of one head that looks one position back, whatever the tokens.

    Rotary embedding turns pair j of a vector at position p by p * base**(-2j/head_dim). All keys
    are (1, 0) in each pair and all queries are that vector turned back by one step, so the score
    is highest where query position - key position == 1.
    """
    theta = base ** (-2.0 * np.arange(head_dim // 2) / head_dim)
    strength = 6.0
    q = np.zeros((head_dim, dim), dtype=np.float32)
    k = np.zeros((head_dim, dim), dtype=np.float32)
    q[0::2], q[1::2] = np.cos(-theta)[:, None], np.sin(-theta)[:, None]
    k[0::2] = 1.0
    scale = strength / np.sqrt(dim)                      # the normed one-hot has the value sqrt(dim)
    return q * scale, k * scale


def write(path, context=8192, broken=False):
    """Write the model to `path`.

    `broken` closes the reasoning with ordinary text instead of the </think> token: the server
    misses it, leaves the grammar off, and the tool call is malformed.
    """
    rng = np.random.default_rng(SEED)
    tokens, types, ids, merges = build_vocab(broken)
    n = len(tokens)
    dim = (n + 31) // 32 * 32                            # hidden size: one slot for each token
    if dim == n:
        dim += 32                                        # at least one slot stays free for the flag
    flag = dim - 1
    heads, head_dim, ff, rope_base = 2, 32, 32, 20.0

    emb = np.zeros((n, dim), dtype=np.float32)
    emb[np.arange(n), np.arange(n)] = 1.0
    # After the final RMS norm a one-hot row has the value sqrt(dim) in its slot.
    out = np.zeros((n, dim), dtype=np.float32)
    out[:, :n] = build_table(ids, n, rng, broken).T / np.sqrt(dim)

    # The flag slot is set where the previous token was " go.": turn "</think>" to a tool call.
    out[:, flag] = -20.0 / np.sqrt(dim)
    out[ids["<tool_call>"], flag] = 40.0 / np.sqrt(dim)

    def noise(rows, cols, scale):
        return rng.normal(0.0, scale, size=(rows, cols)).astype(np.float32)

    w = gguf.GGUFWriter(path, "llama")
    w.add_name("tiny-markov")
    w.add_description("generated table, no training")
    w.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    w.add_context_length(context)
    w.add_embedding_length(dim)
    w.add_block_count(1)
    w.add_feed_forward_length(ff)
    w.add_head_count(heads)
    w.add_head_count_kv(heads)
    w.add_key_length(head_dim)
    w.add_value_length(head_dim)
    w.add_rope_dimension_count(head_dim)
    w.add_rope_freq_base(rope_base)
    w.add_layer_norm_rms_eps(1e-6)
    w.add_vocab_size(n)

    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre("qwen2")
    w.add_token_list(tokens)
    w.add_token_types(types)
    w.add_token_merges(merges)
    w.add_eos_token_id(ids["<|im_end|>"])
    w.add_pad_token_id(ids["<|endoftext|>"])
    w.add_add_bos_token(False)
    with open(os.path.join(HERE, "chat_template.jinja"), encoding="utf-8") as f:
        w.add_chat_template(f.read())

    f16, f32 = np.float16, np.float32
    w.add_tensor("token_embd.weight", emb.astype(f16))
    w.add_tensor("output.weight", out.astype(f16))
    w.add_tensor("output_norm.weight", np.ones(dim, dtype=f32))
    p = "blk.0."
    w.add_tensor(p + "attn_norm.weight", np.ones(dim, dtype=f32))
    q, k, v = (noise(heads * head_dim, dim, 0.05) for _ in range(3))
    o = noise(dim, heads * head_dim, 0.0002)
    q[:head_dim], k[:head_dim] = prev_token_head(dim, head_dim, rope_base)
    v[:head_dim] = 0.0
    o[:, :head_dim] = 0.0
    v[0, ids["go"]] = 1.0 / np.sqrt(dim)
    o[flag, 0] = 1.0
    for name, x in (("q", q), ("k", k), ("v", v), ("output", o)):
        w.add_tensor(f"{p}attn_{name}.weight", x.astype(f16))
    w.add_tensor(p + "ffn_norm.weight", np.ones(dim, dtype=f32))
    w.add_tensor(p + "ffn_gate.weight", noise(ff, dim, 0.02).astype(f16))
    w.add_tensor(p + "ffn_up.weight", noise(ff, dim, 0.02).astype(f16))
    w.add_tensor(p + "ffn_down.weight", noise(dim, ff, 0.0001).astype(f16))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()
    print(f"{path}: {os.path.getsize(path)} bytes, {n} tokens, hidden size {dim}", file=sys.stderr)


if __name__ == "__main__":
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("out")
    ap.add_argument("--context", type=int, default=8192, help="training context in the metadata")
    ap.add_argument("--broken-calls", action="store_true", help="a model whose tool calls are malformed")
    args = ap.parse_args()
    write(args.out, context=args.context, broken=args.broken_calls)
