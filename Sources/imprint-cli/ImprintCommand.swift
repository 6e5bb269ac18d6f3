internal import ArgumentParser
internal import Foundation

@main
enum Main {
    static func main() async {
        Terminal.prepare()
        if let name = nameTakenForHelp {
            end(
                ExitCode.validationFailure,
                "Error: \(visible(name)) is no option; a file of that name is ./\(visible(name)).")
        }
        let arguments = CommandLineArguments.joiningNegativeNumbers(Array(CommandLine.arguments.dropFirst()))
        if let problem = CommandLineArguments.problemWithVerb(arguments) {
            end(ExitCode.validationFailure, "Error: \(problem)")
        }
        var command: any ParsableCommand
        do {
            command = try ImprintCommand.parseAsRoot(arguments)
        } catch {
            end(error, message(forWrongUsage: error, arguments))
        }
        do {
            if var command = command as? any AsyncParsableCommand {
                try await command.run()
            } else {
                try command.run()
            }
        } catch {
            // What shows only as a verb runs has to do with its files, and no usage explains it. Its further lines are indented, so that no
            // name in it passes for a line of the tool's own.
            let message = ImprintCommand.message(for: error)
            end(error, message.isEmpty ? "" : "Error: " + message.replacing("\n", with: "\n  "))
        }
    }

    /// What is said of wrong usage; no argument passes for lines of the tool's own in it.
    private static func message(forWrongUsage error: any Error, _ arguments: [String]) -> String {
        let shown = arguments.map { visible($0) }
        guard shown != arguments else { return ImprintCommand.fullMessage(for: error) }
        do {
            _ = try ImprintCommand.parseAsRoot(shown)
            return visible(ImprintCommand.fullMessage(for: error))
        } catch {
            return ImprintCommand.fullMessage(for: error)
        }
    }

    /// An argument such as -photo where nobody asked for help: the parser would take its letters for options, and the h among them for -h.
    private static var nameTakenForHelp: String? {
        let arguments = CommandLine.arguments.dropFirst().prefix { $0 != "--" }
        guard !arguments.contains(where: ["-h", "-help", "--help"].contains) else { return nil }
        return arguments.first { $0.hasPrefix("-") && !$0.hasPrefix("--") && $0.contains("h") }
    }

    /// Ends the process as an error says, after a message to people if there is one.
    private static func end(_ error: any Error, _ message: String) -> Never {
        let code = ImprintCommand.exitCode(for: error)
        // Help was asked for: a result, which goes to standard output.
        if code.isSuccess { ImprintCommand.exit(withError: error) }
        if !message.isEmpty { Terminal.noteLines(message) }
        exit(code.rawValue)
    }
}

struct ImprintCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "imprint",
        abstract: "Train image classifiers on this machine, and run them. No photo leaves it.",
        version: "0.1.0",
        subcommands: [
            TrainCommand.self, EvaluateCommand.self, ClassifyCommand.self, PersonalizeCommand.self, MergeCommand.self,
            InspectCommand.self, CompareCommand.self, ImportCommand.self, ExportCommand.self, AuditCommand.self,
            PrepareCommand.self, DrawCommand.self, AugmentCommand.self, StudioCommand.self, BenchCommand.self,
        ])
}
