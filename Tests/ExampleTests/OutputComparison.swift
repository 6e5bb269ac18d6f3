import Foundation

/// Compares the output of a command with a page, which shows it as it was on another machine.
///
/// White space may differ, and so may numbers: percentages by 10 points, other integers by 3 or a tenth, other fractions by 0.1 or a fifth.
/// Times, speeds and memory may have any value. `…` stands for any text, and on a line of its own for any number of lines.
enum OutputComparison {
    private enum Token: Hashable {
        case number(String)
        case word(String)

        static let ellipsis = word("…")
    }

    /// Returns whether the lines of both streams, in any interleaving, are the expected ones.
    static func matches(_ expected: [String], output: [String], errors: [String]) -> Bool {
        struct Position: Hashable {
            var expected = 0
            var output = 0
            var error = 0
        }
        var (open, seen) = ([Position()], Set<Position>())
        while let position = open.popLast() {
            guard seen.insert(position).inserted else { continue }
            let hasOutput = position.output < output.count
            let hasError = position.error < errors.count
            guard position.expected < expected.count else {
                if hasOutput || hasError { continue }
                return true
            }
            let line = expected[position.expected]
            let isAny = line.trimmingCharacters(in: .whitespaces) == "…"
            let next = isAny ? position.expected : position.expected + 1
            if isAny { open.append(Position(expected: next + 1, output: position.output, error: position.error)) }
            if hasOutput, isAny || matches(line, output[position.output]) {
                open.append(Position(expected: next, output: position.output + 1, error: position.error))
            }
            if hasError, isAny || matches(line, errors[position.error]) {
                open.append(Position(expected: next, output: position.output, error: position.error + 1))
            }
        }
        return false
    }

    /// Returns whether a line is the expected one.
    static func matches(_ expected: String, _ found: String) -> Bool {
        let expected = tokens(expected)
        return matches(expected[...], tokens(found)[...], speeds: !Set(expected).isDisjoint(with: units))
    }

    /// The units of speeds: each number in a line with one of them may have any value.
    private static let units = Set(["images/s", "GFLOP/s", "GB/s", "ms", "µs"].map(Token.word))

    private static func matches(_ expected: ArraySlice<Token>, _ found: ArraySlice<Token>, speeds: Bool) -> Bool {
        guard let first = expected.first else { return found.isEmpty }
        if first == .ellipsis {
            return (found.startIndex...found.endIndex).contains {
                matches(expected.dropFirst(), found[$0...], speeds: speeds)
            }
        }
        guard let token = found.first else { return false }
        // A duration in minutes and seconds, such as 0:02.
        if isDuration(expected), isDuration(found) {
            return matches(expected.dropFirst(3), found.dropFirst(3), speeds: speeds)
        }
        if case .number(let text) = first, case .number(let other) = token {
            let unit = expected.dropFirst().first
            guard speeds || timesAndSizes.contains(unit) || isNear(text, other, isPercentage: unit == .word("%")) else {
                return false
            }
        } else if first != token {
            return false
        }
        return matches(expected.dropFirst(), found.dropFirst(), speeds: speeds)
    }

    private static let timesAndSizes = Set(
        ["s", "seconds", "minutes", "MB", "kB", "KB", "bytes"].map { Optional(Token.word($0)) })

    private static func isDuration(_ tokens: ArraySlice<Token>) -> Bool {
        guard case .number? = tokens.first, case .number? = tokens.dropFirst(2).first else { return false }
        return tokens.dropFirst().first == .word(":")
    }

    private static func isNear(_ expected: String, _ found: String, isPercentage: Bool) -> Bool {
        guard let value = Double(expected), let other = Double(found) else { return false }
        let difference = abs(value - other)
        if isPercentage { return difference <= 10 }
        return expected.contains(".") ? difference <= max(0.1, value / 5) : difference <= max(3, value / 10)
    }

    /// Splits a line into numbers, words and other characters; a number within a word or a file name is a part of it.
    private static func tokens(_ line: String) -> [Token] {
        line.matches(of: /(?<number>\d+(?:\.\d+)?(?![\w\/\-]|\.\w))|(?<word>[\w.\/\-]+)|(?<other>\S)/).map { match in
            if let number = match.number { return .number(String(number)) }
            return .word(String(match.word ?? match.other ?? ""))
        }
    }
}
