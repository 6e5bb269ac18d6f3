import Foundation

/// The files and commands of a page in docs/tutorials, in their order.
///
/// - A fenced block of the language `console` has commands, which begin with `$ `, each followed by its output. A command continues on the
///   next line after a backslash. In the output, `…` stands for any text, and on a line of its own for any number of lines.
/// - The comment `<!-- not tested: REASON -->` in the line before such a block excludes it, and `<!-- output not tested: REASON -->` excludes
///   its output.
/// - A fenced block of the language `text` is an illustration.
/// - A fenced block of another language is a file. The paragraph before ends with a colon, and its last code span is the name of the file.
struct TutorialPage {
    enum Step: Equatable {
        case file(name: String, text: String)
        case commands([Command], Check)
    }

    struct Command: Equatable {
        let text: String
        var output: [String] = []
    }

    /// How much of a block of commands is tested.
    enum Check: Equatable {
        case all
        /// The commands must succeed, with any output.
        case status(reason: String)
        case nothing(reason: String)
    }

    struct ParsingError: Error, CustomStringConvertible {
        let description: String
    }

    private(set) var steps: [Step] = []

    /// The number of blocks whose commands or output are not tested.
    var uncheckedCount: Int {
        steps.count {
            guard case .commands(_, let check) = $0 else { return false }
            return check != .all
        }
    }

    init(_ page: String) throws {
        var rest = page.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)[...]
        // The last line of text since the previous block.
        var text = ""
        while let line = rest.popFirst() {
            guard line.hasPrefix("```") else {
                if !line.isEmpty { text = line }
                continue
            }
            guard let end = rest.firstIndex(of: "```") else { throw ParsingError(description: "\(line): has no end") }
            let block = Array(rest[..<end])
            rest = rest[(end + 1)...]
            switch line.dropFirst(3) {
            case "console": steps.append(.commands(try Self.commands(block), Self.check(text)))
            case "text": break
            default:
                guard let name = Self.fileName(text) else {
                    throw ParsingError(description: "\(line) after \"\(text)\": names no file")
                }
                steps.append(.file(name: name, text: block.joined(separator: "\n") + "\n"))
            }
            text = ""
        }
    }

    private static func commands(_ lines: [String]) throws -> [Command] {
        var commands: [Command] = []
        var continues = false
        for line in lines {
            if continues, let command = commands.popLast() {
                commands.append(Command(text: command.text + "\n" + line))
            } else if line.hasPrefix("$ ") {
                commands.append(Command(text: String(line.dropFirst(2))))
            } else if commands.isEmpty {
                throw ParsingError(description: "\"\(line)\": comes before any command")
            } else {
                commands[commands.count - 1].output.append(line)
                continue
            }
            continues = line.hasSuffix("\\")
        }
        return commands
    }

    private static func check(_ line: String) -> Check {
        if let match = line.wholeMatch(of: /<!-- not tested: (.+) -->/) { return .nothing(reason: "\(match.1)") }
        if let match = line.wholeMatch(of: /<!-- output not tested: (.+) -->/) { return .status(reason: "\(match.1)") }
        return .all
    }

    private static func fileName(_ line: String) -> String? {
        guard line.hasSuffix(":") else { return nil }
        return line.matches(of: /`([^`]+\.\w+)`/).last.map { String($0.1) }
    }
}
