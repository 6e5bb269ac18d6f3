import Foundation
import TestSupport
import Testing

/// The behaviour that all commands and options share, for the list that the argument parser prints.
@Suite struct CommonUsageTests {
    struct Usage: Decodable {
        let command: Command
    }

    struct Command: Decodable, Sendable, CustomTestStringConvertible {
        let commandName: String
        let arguments: [Argument]?
        let subcommands: [Command]?
        /// The names of the commands that contain this one.
        private var parents: [String]?

        /// The command and the commands that contain it.
        var words: [String] { (parents ?? []) + [commandName] }
        var testDescription: String { words.joined(separator: " ") }
        /// This command, or the commands that it contains.
        var leaves: [Command] {
            guard let subcommands else { return [self] }
            return subcommands.flatMap { command in
                var command = command
                command.parents = words
                return command.leaves
            }
        }
        var options: [Argument] { (arguments ?? []).filter { $0.kind == "option" } }

        /// Returns values for all arguments and for all required options except one.
        func values(without option: String) -> [String] {
            (arguments ?? []).flatMap { argument -> [String] in
                let value = argument.allValues?.first ?? (argument.valueName == "file.png" ? "x.png" : "x")
                if argument.kind == "positional" { return [value] }
                return argument.kind == "option" && !argument.isOptional && argument.name != option
                    ? ["--\(argument.name)", value] : []
            }
        }
    }

    struct Argument: Decodable, Sendable {
        struct Name: Decodable {
            let name: String
        }

        let kind: String
        let names: [Name]?
        let isOptional: Bool
        let valueName: String?
        let allValues: [String]?

        /// The long name.
        var name: String { names?.map(\.name).max { $0.count < $1.count } ?? "" }

        /// Whether the value is one number in a range, and not a text, a path or a choice.
        var isNumeric: Bool {
            let texts = [
                "output", "file", "folder", "model", "network", "name", "list", "labels", "what", "label=file",
                "label=path", "file.html", "file.png", "file or auto", "hex",
                "architecture", "dir", "text", "path", "file.csv", "file.json", "address",
            ]
            return !texts.contains(valueName ?? "") && valueName != "values" && (allValues ?? []).isEmpty
        }
    }

    /// All commands except `help`.
    static let commands: [Command] = {
        guard let dump = try? imprint("--experimental-dump-help"),
            let usage = try? JSONDecoder().decode(Usage.self, from: Data(dump.output.utf8))
        else { return [] }
        return (usage.command.subcommands ?? []).filter { $0.commandName != "help" }.flatMap(\.leaves)
    }()

    @Test("The list contains all commands and their numeric options")
    func commandList() {
        #expect(Self.commands.count == 25)
        let numeric = Self.commands.flatMap { command in
            command.options.filter(\.isNumeric).map { "\(command.testDescription) \($0.name)" }
        }
        for option in ["train seed", "merge clip", "personalize memory", "import input-size", "bench seconds"] {
            #expect(numeric.contains(option))
        }
        for option in ["train output", "import mean", "audit validation", "export to"] {
            #expect(!numeric.contains(option))
        }
    }

    @Test("A negative number is an error that states the range of the option", arguments: commands)
    func negativeNumbers(command: Command) throws {
        for option in command.options where option.isNumeric {
            for value in ["-1", "-0.5"] {
                let run = try run(
                    tool, command.words + command.values(without: option.name) + ["--\(option.name)", value])
                #expect(run.status == 64, "\(option.name) \(value): \(run.errors)")
                let first = run.errors.prefix { $0 != "\n" }
                // For integer options, the parser itself rejects a fraction.
                let isRange = first.contains("expected") && first.dropFirst("Error: ".count).contains(where: \.isNumber)
                #expect(isRange || (value == "-0.5" && first.contains("'-0.5' is invalid")), "\(option.name): \(first)")
                #expect(first.contains("--\(option.name)"), "\(first)")
            }
        }
    }

    @Test("An option instead of a value is a missing value, but negative numbers are values")
    func missingValues() throws {
        for option in ["--json", "--seed"] {
            let run = try imprint("train", "photos", "--output", option)
            #expect(run.status == 64 && run.errors.contains("Missing value for '--output <file>'"), "\(run.errors)")
        }
        let mean = try imprint("import", "none.onnx", "--output", "x", "--mean", "-1,-2.5,-3", "--scale", "-.5")
        #expect(mean.status == 1 && mean.errors.contains("none.onnx"), "\(mean.errors)")
        let file = try imprint("audit", "--", "-1")
        #expect(file.status == 1 && file.errors.contains("-1"), "\(file.errors)")
    }

    @Test("Every command has --json and --threads, and reports the range of --threads", arguments: commands)
    func threads(command: Command) throws {
        #expect((command.arguments ?? []).contains { $0.kind == "flag" && $0.name == "json" })
        for count in ["0", "1000", "-2"] {
            let run = try run(tool, command.words + command.values(without: "threads") + ["--threads", count])
            #expect(
                run.status == 64 && run.errors.contains("--threads is \(count), expected 1 to 256."), "\(run.errors)")
        }
    }

    @Test(
        "A misspelt command is an error that suggests the nearest command and lists all commands",
        arguments: [
            (
                "clasify m x",
                "imprint clasify: there is no such subcommand. Did you mean classify? The subcommands are train, train-detector,"
            ),
            ("trian photos", "Did you mean train?"), ("Evaluate m photos", "Did you mean evaluate?"),
            ("eval m photos", "Did you mean evaluate?"),
            ("help inspct", "imprint inspct: there is no such subcommand. Did you mean inspect?"),
            ("recognise x", "imprint recognise: there is no such subcommand. The subcommands are"),
        ])
    func misspeltCommands(command: String, message: String) throws {
        let run = try shell("$imprint \(command)", folder: packageFolder)
        #expect(run.status == 64 && run.output.isEmpty && run.errors.contains(message), "\(run.errors)")
        #expect(run.errors.contains("studio, bench; imprint --help describes them."))
    }

    @Test(
        "A misspelt subcommand of models is an error that suggests the nearest subcommand",
        arguments: [
            ("models lst", "imprint models lst: there is no such subcommand. Did you mean list? The subcommands are"),
            ("help models instaal", "imprint models instaal: there is no such subcommand. Did you mean install?"),
            ("models show logonet", "imprint models show: there is no such subcommand. The subcommands are"),
        ])
    func misspeltSubcommands(command: String, message: String) throws {
        let run = try shell("$imprint \(command)", folder: packageFolder)
        #expect(run.status == 64 && run.output.isEmpty && run.errors.contains(message), "\(run.errors)")
        #expect(run.errors.contains("list, install, remove; imprint models --help describes them."))
    }

    @Test(
        "A misspelt option is an error that suggests the nearest option, also --help and --version",
        arguments: [
            ("--hlep", "Error: Unknown option '--hlep'. Did you mean '--help'? imprint --help lists the options."),
            ("--verison", "Did you mean '--version'?"), ("--ouput m", "Unknown option '--ouput'. imprint --help lists"),
            ("classify m --hlep", "Did you mean '--help'? imprint classify --help lists the options."),
            ("classify m x --treshold 0.5", "Did you mean '--threshold'?"),
            ("models list --jsn", "Did you mean '--json'? imprint models list --help lists the options."),
            ("models install x --acept-license", "Did you mean '--accept-license'?"),
        ])
    func misspeltOptions(command: String, message: String) throws {
        let run = try shell("$imprint \(command)", folder: packageFolder)
        #expect(run.status == 64 && run.output.isEmpty && run.errors.contains(message), "\(run.errors)")
    }

    @Test(
        "An option that help does not list is not reported as unknown beside another mistake",
        arguments: [
            ("--generate-completion-script tcsh", "Can't generate completion scripts for 'tcsh'"),
            ("classify m x --help-hidden --top", "Missing value for '--top "),
            ("classify m x --experimental-dump-help --top", "Missing value for '--top "),
        ])
    func unlistedOptions(command: String, message: String) throws {
        let run = try shell("$imprint \(command)", folder: packageFolder)
        #expect(run.status == 64 && run.errors.contains(message), "\(run.errors)")
        #expect(!run.errors.contains("Unknown option"))
    }
}
