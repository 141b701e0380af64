#!/usr/bin/env python3
"""Refreshes sizes, abilities and prices in resources/models.toml from a public table. For maintainers; needs Python 3.11.

    python3 packaging/refresh_models.py                  # the table of the newest `litellm` on PyPI (it is not installed)
    python3 packaging/refresh_models.py --table FILE     # a table that is there already
    python3 packaging/refresh_models.py --check          # change nothing; exit 1 when something would change

The table is `model_prices_and_context_window*.json`, a list of facts that the community keeps and the package carries.
Only facts are taken from it. What is refreshed: context, max_output, vision, thinks, tools, thinking, fixed_temperature
and prices with today's date. What a person wrote stays: the order, the providers with their quirks, and every field of a
model that is not in the list above. A model that the table does not have is kept as it is and named at the end, so that
somebody looks. A price that did not change keeps its date only when --keep-dates is given: a date says when a price was
last seen to hold.
"""

import argparse
import datetime
import json
import pathlib
import subprocess
import sys
import tempfile
import tomllib
import zipfile

MODELS = pathlib.Path(__file__).resolve().parent.parent / "resources" / "models.toml"
MARK = "[[model]]"

# How the table prefixes the models of a provider.
PREFIXES = {
    "kimi": "moonshot/", "deepseek": "deepseek/", "claude": "", "openai": "", "qwen": "dashscope/", "gemini": "gemini/",
    "mistral": "mistral/", "groq": "groq/", "openrouter": "openrouter/", "xai": "xai/",
}
ORDER = ["provider", "id", "context", "max_output", "prices", "vision", "thinks", "tools", "thinking", "fixed_temperature"]
KINDS = {"input": "input_cost_per_token", "output": "output_cost_per_token", "cached": "cache_read_input_token_cost",
         "cache_write": "cache_creation_input_token_cost"}


def download():
    """The table out of the newest package, without installing it."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:", "--dest", folder]
        subprocess.run([*command, "litellm"], check=True)
        wheel = next(pathlib.Path(folder).glob("*.whl"))
        with zipfile.ZipFile(wheel) as archive:
            names = [name for name in archive.namelist() if "model_prices_and_context_window" in name and name.endswith(".json")]
            return json.loads(archive.read(names[0])), wheel.name.split("-")[1]


def million(price):
    """US dollars per million tokens, without the noise of binary fractions."""
    return float(f"{price * 1e6:.10g}")


def prices_at(entry, ending=""):
    """The prices of one tier; `None` when it has none."""
    found = {name: entry.get(key + ending) for name, key in KINDS.items()}
    if found["input"] is None or found["output"] is None:
        return None
    # A write that costs nothing extra is told as 0: it is billed as input.
    return {name: million(price) for name, price in found.items() if price is not None and (price > 0 or name in ("input", "output"))}


def prices(entry, date):
    """All prices of a model, with the tiers by length of the prompt."""
    tiers = entry.get("tiered_pricing")
    above = []
    if tiers:
        base = prices_at(tiers[0])
        above = [{"tokens": int(tier["range"][0]), **(prices_at(tier) or {})} for tier in tiers[1:]]
    else:
        base = prices_at(entry)
        start = KINDS["input"] + "_above_"
        for key in entry:
            if key.startswith(start) and key.endswith("k_tokens"):
                count = int(key[len(start):-len("k_tokens")])
                above.append({"tokens": count * 1000, **(prices_at(entry, f"_above_{count}k_tokens") or {})})
    # Zero for both is how the table says that it does not know.
    if base is None or (base["input"] == 0 and base["output"] == 0):
        return None
    base["date"] = date
    above = sorted((tier for tier in above if "input" in tier), key=lambda tier: tier["tokens"])
    if above:
        base["above"] = above
    return base


def refreshed(model, entry, date):
    """The model with the facts of the table over its own."""
    new = dict(model)
    for name, key in (("context", "max_input_tokens"), ("max_output", "max_output_tokens")):
        if entry.get(key):
            new[name] = int(entry[key])
    new["vision"] = bool(entry.get("supports_vision", False))
    new["thinks"] = bool(entry.get("supports_reasoning", False))
    new["tools"] = bool(entry.get("supports_function_calling", False))
    if model["provider"] == "claude" and new["thinks"]:
        new["thinking"] = "adaptive" if entry.get("supports_adaptive_thinking") else "budget"
    if entry.get("supports_sampling_params") is False:
        new["fixed_temperature"] = True
    new.pop("prices", None)
    if told := prices(entry, date):
        new["prices"] = told
    return new


def write_value(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, list):
        return "[" + ", ".join(map(write_value, value)) + "]"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {write_value(item)}" for key, item in value.items()) + " }"
    return repr(value)


def write_model(model):
    names = [name for name in ORDER if name in model] + [name for name in model if name not in ORDER]
    return "\n".join([MARK, *(f"{name} = {write_value(model[name])}" for name in names)]) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", type=pathlib.Path, help="the JSON table; without it, it is taken from PyPI")
    parser.add_argument("--models", type=pathlib.Path, default=MODELS, help="the file to refresh")
    parser.add_argument("--check", action="store_true", help="change nothing; exit 1 when something would change")
    parser.add_argument("--keep-dates", action="store_true", help="leave the date of a price that did not change")
    arguments = parser.parse_args()
    table, version = (json.loads(arguments.table.read_text("utf-8")), arguments.table.name) if arguments.table else download()
    text = arguments.models.read_text("utf-8")
    head = text[:text.index(MARK)]
    date = datetime.date.today().isoformat()
    missing, changed, blocks = [], [], []
    for model in tomllib.loads(text)["model"]:
        entry = table.get(PREFIXES.get(model["provider"], model["provider"] + "/") + model["id"])
        new = refreshed(model, entry, date) if entry else model
        if entry is None:
            missing.append(f"{model['provider']} {model['id']}")
        same = {**new, "prices": {**new.get("prices", {}), "date": None}} == {**model, "prices": {**model.get("prices", {}), "date": None}}
        if not same:
            changed.append(f"{model['provider']} {model['id']}")
        elif arguments.keep_dates or arguments.check:
            new = model
        blocks.append(write_model(new))
    print(f"table {version}: {len(blocks)} models, {len(changed)} changed, {len(missing)} not in the table")
    for name in changed:
        print(f"  changed: {name}")
    for name in missing:
        print(f"  look at: {name}")
    if arguments.check:
        return 1 if changed else 0
    arguments.models.write_text(head + "\n".join(blocks), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
