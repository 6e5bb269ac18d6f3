internal import ArgumentParser
internal import ImprintCore

/// Preprocessing of the command line before the parser reads it.
enum CommandLineArguments {
    /// Joins negative numbers to the options before them, so that "--seed -1" becomes "--seed=-1".
    ///
    /// Otherwise the parser takes -1 for an option and reports a missing value.
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

    /// Translates the options of version 1 to their current names.
    ///
    /// `train PHOTOS --artwork …` is `train-detector --photos PHOTOS --artwork …`.
    static func modernizing(_ arguments: [String]) -> [String] {
        guard var command = arguments.first else { return arguments }
        let options = arguments.dropFirst().prefix { $0 != "--" }
        if command == "train" && options.contains(where: { optionName($0) == "--artwork" }) {
            command = "train-detector"
        }
        var modern = [command]
        var isMinutes = false
        for argument in options {
            let (name, value) = (optionName(argument), argument.firstIndex(of: "=").map { argument[$0...] } ?? "")
            switch (command, name) {
            case ("train", "--minutes"):
                isMinutes = value.isEmpty
                modern.append("--time-limit\(value)" + (isMinutes ? "" : "m"))
            case ("personalize", "--continue"): modern.append("--resume\(value)")
            case ("export", "--float16"), ("export", "--int8"): modern += ["--precision", String(name.dropFirst(2))]
            default:
                modern.append(isMinutes ? argument + "m" : argument)
                isMinutes = false
            }
        }
        return modern + arguments.dropFirst(1 + options.count)
    }

    /// Returns the name of an option without its value: "--seed" for "--seed=1".
    private static func optionName(_ argument: String) -> String { String(argument.prefix { $0 != "=" }) }

    /// Returns whether an argument is a negative number, memory size (-1GB), time (-1m) or list of numbers (-1,2).
    private static func isNegative(_ argument: String) -> Bool {
        // -0 is the option --null.
        guard argument.hasPrefix("-"), argument != "-0" else { return false }
        return argument.split(separator: ",", omittingEmptySubsequences: false).allSatisfy { part in
            let unit = ["MB", "GB", "S", "M", "H"].first { part.uppercased().hasSuffix($0) } ?? ""
            return Double(part.dropLast(unit.count)) != nil
        }
    }

    /// Returns the error message for an unknown subcommand, also of a subcommand such as models; nil if all exist, or if an option precedes them.
    static func problemWithSubcommand(_ arguments: [String]) -> String? {
        var command: any ParsableCommand.Type = ImprintCommand.self
        var path = "imprint"
        for word in arguments.first == "help" ? arguments.dropFirst() : arguments[...] {
            let subcommands = command.configuration.subcommands
            let isHelp = path == "imprint" && word == "help"
            guard !subcommands.isEmpty, !word.hasPrefix("-"), !isHelp else { return nil }
            guard let next = subcommand(word, of: command) else {
                let names = subcommands.compactMap { $0.configuration.commandName }
                let suggestion = suggestion(for: word, from: names).map { " Did you mean \($0)?" } ?? ""
                return "\(path) \(shown(word)): there is no such subcommand.\(suggestion) The subcommands are "
                    + names.joined(separator: ", ") + "; \(path) --help describes them."
            }
            (command, path) = (next, "\(path) \(word)")
        }
        return nil
    }

    /// The options of the parser that help does not list.
    private static let unlistedOptions = ["--experimental-dump-help", "--generate-completion-script", "--help-hidden"]

    /// Returns the error message for an option that the subcommand does not have; nil if it has all of them.
    ///
    /// The parser reports other problems first, such as a required option that is missing because it is misspelt. It does not suggest --help and
    /// --version.
    static func problemWithOptions(_ arguments: [String]) -> String? {
        var command: any ParsableCommand.Type = ImprintCommand.self
        var path = ["imprint"]
        for word in arguments {
            guard let next = subcommand(word, of: command) else { break }
            (command, path) = (next, path + [word])
        }
        let known = options(of: command)
        let given = arguments.prefix { $0 != "--" }.filter { $0.hasPrefix("--") }.map(optionName)
        guard let option = given.first(where: { !known.contains($0) && !unlistedOptions.contains($0) }) else {
            return nil
        }
        let suggestion = suggestion(for: option, from: known.sorted()).map { " Did you mean '\($0)'?" } ?? ""
        return
            "Unknown option '\(shown(option))'.\(suggestion) \(path.joined(separator: " ")) --help lists the options."
    }

    /// Returns the long names of the options of a command, such as "--output".
    static func options(of command: any ParsableCommand.Type) -> Set<String> {
        let help = ImprintCommand.helpMessage(for: command, includeHidden: true, columns: 1000)
        // The line of an option begins with its name; the text after it and examples may name options of other subcommands.
        let lines = help.split(separator: "\n").filter { $0.hasPrefix("  -") }
        return Set(lines.compactMap { $0.firstMatch(of: /--[a-z][a-z0-9-]*/).map { String($0.output) } })
    }

    /// Returns the subcommand of a command with a name; nil if it has no such subcommand.
    private static func subcommand(
        _ name: String, of command: any ParsableCommand.Type
    ) -> (any ParsableCommand.Type)? {
        command.configuration.subcommands.first { $0.configuration.commandName == name }
    }

    /// Returns the word that a misspelt or abbreviated one probably means.
    private static func suggestion(for word: String, from words: [String]) -> String? {
        let word = word.lowercased()
        if word.count > 1, let longer = words.first(where: { $0.hasPrefix(word) }) { return longer }
        let nearest = words.map { (word: $0, distance: editDistance(word, $0)) }.min { $0.distance < $1.distance }
        return nearest.flatMap { $0.distance <= 2 ? $0.word : nil }
    }
}
