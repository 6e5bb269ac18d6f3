import Foundation
import TestSupport
import Testing

/// What holds for every verb and option, as the parser lists them.
@Suite struct CommonUsageTests {
    struct Usage: Decodable {
        let command: Command
    }

    struct Command: Decodable, Sendable, CustomTestStringConvertible {
        let commandName: String
        let arguments: [Argument]?
        let subcommands: [Command]?

        var testDescription: String { commandName }

        /// Words that fill in all arguments and the required options but for one.
        func words(without option: String) -> [String] {
            (arguments ?? []).flatMap { argument -> [String] in
                let value = argument.allValues?.first ?? "x"
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
        let allValues: [String]?

        var name: String { names?.last?.name ?? "" }
    }

    /// All verbs but help.
    static let verbs: [Command] = {
        guard let dump = try? imprint("--experimental-dump-help"),
            let usage = try? JSONDecoder().decode(Usage.self, from: Data(dump.output.utf8))
        else { return [] }
        return (usage.command.subcommands ?? []).filter { $0.commandName != "help" }
    }()

    @Test("All verbs are listed") func verbsAreListed() { #expect(Self.verbs.count == 15) }

    @Test("Every verb takes --json and --threads, and gives the range of threads", arguments: verbs)
    func threads(verb: Command) throws {
        #expect((verb.arguments ?? []).contains { $0.kind == "flag" && $0.name == "json" })
        for count in ["0", "1000"] {
            let run = try run(tool, [verb.commandName] + verb.words(without: "threads") + ["--threads", count])
            #expect(
                run.status == 64 && run.errors.contains("--threads is \(count), expected 1 to 256."), "\(run.errors)")
        }
    }
}
