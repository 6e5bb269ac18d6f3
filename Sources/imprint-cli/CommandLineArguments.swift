internal import ArgumentParser

/// The command line, prepared for the parser.
enum CommandLineArguments {
    /// Joins negative numbers to the options before them, so that "--seed -1" becomes "--seed=-1".
    ///
    /// The parser would take -1 for an option and report a missing value.
    static func joiningNegativeNumbers(_ arguments: [String]) -> [String] {
        var joined: [String] = []
        let options = arguments.prefix { $0 != "--" }
        for argument in options {
            if let option = joined.last, isNegative(argument), option.hasPrefix("--"), !option.contains("=") {
                joined[joined.count - 1] = "\(option)=\(argument)"
            } else {
                joined.append(argument)
            }
        }
        return joined + arguments.dropFirst(options.count)
    }

    /// Whether an argument is a negative number, a memory size such as -1GB, or a list such as -1,2.
    private static func isNegative(_ argument: String) -> Bool {
        guard argument.hasPrefix("-") else { return false }
        return argument.split(separator: ",", omittingEmptySubsequences: false).allSatisfy { part in
            let unit = ["MB", "GB"].first { part.uppercased().hasSuffix($0) } ?? ""
            return Double(part.dropLast(unit.count)) != nil
        }
    }
}
