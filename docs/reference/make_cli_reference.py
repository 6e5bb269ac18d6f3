"""Prints docs/reference/cli.md, the reference of all subcommands and options, from the help texts of `imprint`.

Usage: make_cli_reference.py IMPRINT > cli.md

It reads `IMPRINT --experimental-dump-help`, the JSON that swift-argument-parser prints, and the groups of subcommands from `IMPRINT --help`.
"""

import json
import pathlib
import re
import subprocess
import sys
import textwrap

WIDTH = 150


def link(path):
    """A link to a page with its title as text; the path is relative to docs/reference."""
    page = pathlib.Path(__file__).parent / path
    return f"[{page.read_text(encoding='utf-8').splitlines()[0].removeprefix('# ')}]({path})"


INTRODUCTION = f"""\
# Command-line reference

`./run cli` generates this page from the help texts of `imprint`, which `imprint SUBCOMMAND --help` shows too. Do not edit it.

- {link("command-line-behaviour.md")}: exit codes, replaced files, pipes and names.
- {link("json-output.md")} and {link("json-results.md")}: the output of `--json`.
- {link("hyperparameters.md")}: the ranges of the settings of training, and their names in Swift.
"""

# The pages that explain a subcommand. Relative paths; a name without a folder is a page of docs/reference.
GUIDES = {
    "train": [
        "../how-to/training-data.md", "../explanation/transfer.md", "../how-to/augmentation.md", "../how-to/checkpoints.md",
        "../how-to/cross-validation.md", "../how-to/watch-training.md", "../how-to/report.md", "hyperparameters.md",
    ],
    "train-detector": ["../how-to/logo-detection.md", "../how-to/annotations.md", "../how-to/checkpoints.md", "hyperparameters.md"],
    "personalize": ["../how-to/personalization.md", "hyperparameters.md"],
    "merge": ["../how-to/merging.md"],
    "join": ["../how-to/train-a-fleet.md"],
    "classify": ["../how-to/classify-photos.md", "../how-to/inputs-and-outputs.md"],
    "detect": ["../how-to/detect-objects.md", "../how-to/inputs-and-outputs.md", "../how-to/faces.md", "../explanation/matching.md"],
    "serve": ["../how-to/serve.md"],
    "evaluate": ["metrics.md", "../how-to/report.md", "../how-to/annotations.md"],
    "compare": ["metrics.md"],
    "inspect": ["../how-to/inspect-models.md", "../explanation/engine.md"],
    "models": ["../how-to/base-models.md"],
    "import": ["../how-to/import.md"],
    "export": ["../how-to/export.md", "model-file-int8.md"],
    "sign": ["../how-to/sign-models.md"],
    "verify": ["../how-to/sign-models.md"],
    "quantize": ["../how-to/precision.md", "../explanation/quantization.md"],
    "audit": ["../how-to/audit-photos.md", "../how-to/annotations.md"],
    "prepare": ["../how-to/audit-photos.md"],
    "augment": ["../how-to/augmentation.md"],
    "draw": ["../how-to/synthetic-data.md", "../explanation/compositing.md"],
    "studio": ["../how-to/studio.md"],
    "bench": ["../results/benchmarks.md"],
}


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def fill(text):
    """The text in lines of at most WIDTH characters; code and links stay on one line."""
    joined = re.sub(r"\[[^\]]*\]\([^)]*\)|`[^`]*`", lambda part: part[0].replace(" ", "\0"), text)
    return textwrap.fill(joined, WIDTH, break_long_words=False, break_on_hyphens=False).replace("\0", " ")


def visible(items):
    return [item for item in items if item["shouldDisplay"]]


def subcommand_groups(help_page):
    """The groups of `imprint --help` as (title, names of subcommands)."""
    groups = []
    for line in help_page.splitlines():
        title = re.fullmatch(r"(.+) SUBCOMMANDS:", line)
        subcommand = re.match(r"  ([a-z][a-z-]*) ", line)
        if title:
            groups.append((title[1].capitalize(), []))
        elif line and not line.startswith(" "):
            continue
        elif subcommand and groups:
            groups[-1][1].append(subcommand[1])
    return groups


class Reference:
    def __init__(self, root, groups):
        self.groups = groups
        self.commands = {}
        for command in visible(root["subcommands"]):
            if command["commandName"] == "help":
                continue
            name = command["commandName"]
            self.commands[name] = command
            for subcommand in visible(command.get("subcommands", [])):
                self.commands[f"{name} {subcommand['commandName']}"] = subcommand
        listed = {subcommand for _, subcommands in groups for subcommand in subcommands}
        if listed != {name for name in self.commands if " " not in name} or listed != set(GUIDES):
            sys.exit(f"The subcommands of --help, of --experimental-dump-help and of GUIDES in this script differ: {sorted(listed ^ set(GUIDES))}")
        self.common = self.common_options(root)

    def common_options(self, root):
        """The options that most subcommands share, and those of `imprint` itself."""
        counts = {}
        for command in self.commands.values():
            for argument in visible(command["arguments"]):
                counts.setdefault(json.dumps(argument, sort_keys=True), []).append(argument)
        shared = [same[0] for same in counts.values() if len(same) > len(self.commands) / 2]
        return shared + [option for option in visible(root["arguments"]) if option not in shared]

    # Text

    def prose(self, text, subcommand=None):
        """Help text as Markdown: options as code, and subcommands as links to their sections."""
        text = re.sub(r"([*|<])", r"\\\1", text)
        names = sorted(self.commands, key=lambda name: (-len(name), name))

        def code(match):
            name = match["subcommand"]
            if name is None or name == subcommand:
                return f"`{match[0]}`"
            return f"[`{match[0]}`](#{name.replace(' ', '-')})"

        option = r"(?<![\w-])--[a-z][a-z-]*"
        return re.sub(rf"\bimprint (?P<subcommand>{'|'.join(names)})(?![\w-])(?: {option})?|{option}", code, text)

    def paragraph(self, text, subcommand=None):
        return fill(self.prose(" ".join(text.split()), subcommand))

    def discussion(self, text, subcommand):
        """The examples of a help text as code, followed by its paragraphs."""
        examples, paragraphs = [], []
        for part in text.strip().split("\n\n"):
            lines = part.splitlines()
            if lines[0] == "Examples:":
                examples = [f"    {line.strip()}" for line in lines[1:]]
            else:
                paragraphs.append(self.paragraph(part, subcommand))
        return (["\n".join(examples)] if examples else []) + paragraphs

    # Arguments

    @staticmethod
    def names(argument):
        """The names of an option with its value, such as `--output <file>`."""
        names = []
        for name in argument["names"]:
            names.append("-" * (2 if name["kind"] == "long" else 1) + name["name"])
        value = f" <{argument['valueName']}>" if argument["kind"] == "option" else ""
        return ", ".join(names) + value

    def meaning(self, argument, subcommand):
        """The help text of an argument and its default."""
        text, default = argument["abstract"], argument.get("defaultValue", "")
        written = re.fullmatch(r"(.*?) ?\(default: (.*)\)", text, re.DOTALL)
        if written:
            text, default = written[1], written[2]
        meaning, values = self.prose(text, subcommand), argument.get("allValues", [])
        if not all(re.search(rf"(?<![\w-]){re.escape(value)}(?![\w-])", text) for value in values):
            meaning += f" Values: {', '.join(f'`{value}`' for value in values)}."
        is_value = re.fullmatch(r"[\w.,-]*\d[\w.,-]*|[a-z]+(-[a-z]+)+", default) or default in values
        return meaning, f"`{default}`" if is_value else self.prose(default, subcommand)

    def table(self, heading, arguments, subcommand):
        rows = []
        for argument in arguments:
            is_positional = argument["kind"] == "positional"
            name = f"`<{argument['valueName']}>`" if is_positional else f"`{self.names(argument)}`"
            if not is_positional and not argument["isOptional"]:
                name += ", required"
            rows.append((name, *self.meaning(argument, subcommand)))
        if any(default for *_, default in rows):
            lines = [f"| {heading} | meaning | default |", "|---|---|---|"]
            lines += [f"| {name} | {meaning} | {default + ' ' if default else ''}|" for name, meaning, default in rows]
        else:
            lines = [f"| {heading} | meaning |", "|---|---|"]
            lines += [f"| {name} | {meaning} |" for name, meaning, _ in rows]
        return "\n".join(lines)

    def usage(self, name, arguments):
        words = ["imprint", name]
        for argument in arguments:
            if argument["kind"] == "positional":
                word = f"<{argument['valueName']}>" + (" ..." if argument["isRepeating"] else "")
                words.append(f"[{word}]" if argument["isOptional"] else word)
        for argument in arguments:
            if argument["kind"] != "positional" and not argument["isOptional"]:
                words.append(self.names(argument))
        return "    " + " ".join(words + ["[<options>]"])

    # Sections

    def section(self, name):
        command = self.commands[name]
        arguments = [argument for argument in visible(command["arguments"]) if argument not in self.common]
        level = "###" if " " in name else "##"
        parts = [f"{level} {name}", self.paragraph(command["abstract"], name)]
        parts += self.discussion(command["discussion"], name) if command.get("discussion") else []
        if not command.get("subcommands"):
            parts.append("Usage:")
            parts.append(self.usage(name, arguments))
        titles = []
        for argument in arguments:
            title = argument.get("sectionTitle", "")
            if title not in titles:
                titles.append(title)
        for title in sorted(titles, key=lambda title: (title != "", titles.index(title))):
            members = [argument for argument in arguments if argument.get("sectionTitle", "") == title]
            positional = [argument for argument in members if argument["kind"] == "positional"]
            options = [argument for argument in members if argument["kind"] != "positional"]
            if title:
                parts.append(f"**{title}**")
            if positional:
                parts.append(self.table("argument", positional, name))
            if options:
                parts.append(self.table("option", options, name))
        shared = [f"`{self.names(argument)}`" for argument in self.common if argument in command["arguments"]]
        shared = [name for name in shared if "--help" not in name and "--version" not in name]
        if shared:
            parts.append(f"[Common options](#common-options): {', '.join(shared)}.")
        if name in GUIDES:
            parts.append(fill(f"See also {', '.join(link(path) for path in GUIDES[name])}."))
        return parts

    def page(self):
        parts = [INTRODUCTION.rstrip(), "    imprint SUBCOMMAND … [--json] [--threads N]"]
        rows = ["| group | subcommand | purpose |", "|---|---|---|"]
        for title, subcommands in self.groups:
            for index, subcommand in enumerate(subcommands):
                abstract = self.prose(self.commands[subcommand]["abstract"], subcommand)
                rows.append(f"| {title + ' ' if index == 0 else ''}| [{subcommand}](#{subcommand}) | {abstract} |")
        parts.append("\n".join(rows))
        parts += ["## Common options", self.table("option", self.common, None)]
        for _, subcommands in self.groups:
            for subcommand in subcommands:
                parts += self.section(subcommand)
                for name in self.commands:
                    if name.startswith(subcommand + " "):
                        parts += self.section(name)
        return "\n\n".join(parts) + "\n"


if len(sys.argv) != 2:
    sys.exit(__doc__)
tool = sys.argv[1]
help_tree = json.loads(output(tool, "--experimental-dump-help"))
if help_tree["serializationVersion"] != 0:
    sys.exit(f"--experimental-dump-help has version {help_tree['serializationVersion']}, expected 0.")
print(Reference(help_tree["command"], subcommand_groups(output(tool, "--help"))).page(), end="")
