internal import ArgumentParser
internal import Foundation
internal import ImprintBenchmarks
internal import ImprintCore
internal import ImprintNetwork

@main
enum Main {
    static func main() async {
        Terminal.prepare()
        TrainingProcesses.silenceOthers()
        if let name = nameTakenForHelp {
            end(
                ExitCode.validationFailure,
                "Error: \(visible(name)) is not an option; for a file of that name, write ./\(visible(name)).")
        }
        let arguments = CommandLineArguments.joiningNegativeNumbers(
            CommandLineArguments.modernizing(Array(CommandLine.arguments.dropFirst())))
        if let problem = CommandLineArguments.problemWithSubcommand(arguments) {
            end(ExitCode.validationFailure, "Error: \(problem)")
        }
        var command: any ParsableCommand
        do {
            command = try ImprintCommand.parseAsRoot(arguments)
        } catch {
            end(error, message(forWrongUsage: error, arguments))
        }
        let start = ContinuousClock.now
        Terminal.detail("imprint \(ImprintCommand.configuration.version), \(Engine.current).")
        do {
            if var command = command as? any AsyncParsableCommand {
                try await command.run()
            } else {
                try command.run()
            }
            Terminal.detail(usage(since: start))
            TrainingProcesses.finish()
        } catch {
            // Errors at run time are about files, so the usage would not help. Further lines are indented: a file name cannot fake a message.
            let lines = [ImprintCommand.message(for: error), hint(for: error, in: type(of: command))].compactMap { $0 }
            let message = lines.joined(separator: "\n").replacingScalars { $0 == "\n" ? "\n  " : nil }
            end(
                isWrongUsage(error) ? ExitCode.validationFailure : error,
                message.isEmpty ? "" : "Error: " + message)
        }
    }

    /// Returns the time and memory of a finished command.
    private static func usage(since start: ContinuousClock.Instant) -> String {
        let elapsed = String(format: "%.1f s", (ContinuousClock.now - start) / .seconds(1))
        return "Finished in \(elapsed)"
            + (PeakMemory.bytes.map { ", with at most \(SystemMemory.text($0)) of memory." } ?? ".")
    }

    /// Returns the message for a usage error; an argument in it cannot fake another message.
    private static func message(forWrongUsage error: any Error, _ arguments: [String]) -> String {
        if let problem = CommandLineArguments.problemWithOptions(arguments) { return "Error: \(problem)" }
        let shown = arguments.map { visible($0) }
        guard shown != arguments else { return ImprintCommand.fullMessage(for: error) }
        do {
            _ = try ImprintCommand.parseAsRoot(shown)
            return visible(ImprintCommand.fullMessage(for: error))
        } catch {
            return ImprintCommand.fullMessage(for: error)
        }
    }

    /// An argument such as -photo, which the parser would take for the option -h.
    private static var nameTakenForHelp: String? {
        let arguments = CommandLine.arguments.dropFirst().prefix { $0 != "--" }
        guard !arguments.contains(where: ["-h", "-help", "--help"].contains) else { return nil }
        return arguments.first { $0.hasPrefix("-") && !$0.hasPrefix("--") && $0.contains("h") }
    }

    /// Prints the message if it is not empty, and ends the process with the exit code of the error.
    private static func end(_ error: any Error, _ message: String) -> Never {
        let code = ImprintCommand.exitCode(for: error)
        if code.isSuccess { endWithHelp(ImprintCommand.fullMessage(for: error)) }
        TrainingProcesses.fail(message, code: code.rawValue)
        exit(code.rawValue)
    }

    /// Prints help, a version or a completion script to standard output, and ends the process.
    private static func endWithHelp(_ text: String) -> Never {
        do {
            if !text.isEmpty { try Terminal.help(text) }
            exit(ExitCode.success.rawValue)
        } catch {
            TrainingProcesses.fail("Error: \(error)", code: ExitCode.failure.rawValue)
            exit(ExitCode.failure.rawValue)
        }
    }
}

struct ImprintCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "imprint",
        abstract:
            "Train, personalize and run image classifiers and logo detectors on this machine. No photo leaves it.",
        discussion: """
            Examples:
              imprint train photos --output pets.imprint
              imprint classify pets.imprint photo.jpg
              imprint detect --artwork Logo=logo.png photos --annotate found
            """,
        version: "0.2.0",
        groupedSubcommands: [
            CommandGroup(
                name: "Training",
                subcommands: [
                    TrainCommand.self, TrainDetectorCommand.self, PersonalizeCommand.self, MergeCommand.self,
                    JoinCommand.self,
                ]),
            CommandGroup(
                name: "Using and measuring models",
                subcommands: [
                    ClassifyCommand.self, DetectCommand.self, ServeCommand.self, EvaluateCommand.self,
                    CompareCommand.self,
                ]),
            CommandGroup(
                name: "Model files",
                subcommands: [
                    InspectCommand.self, ModelsCommand.self, ImportCommand.self, ExportCommand.self,
                    QuantizeCommand.self, SignCommand.self, VerifyCommand.self,
                ]),
            CommandGroup(
                name: "Photos",
                subcommands: [AuditCommand.self, PrepareCommand.self, AugmentCommand.self, DrawCommand.self]),
            CommandGroup(name: "Browser app and benchmarks", subcommands: [StudioCommand.self, BenchCommand.self]),
        ])
}
