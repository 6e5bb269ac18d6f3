internal import ArgumentParser

/// A time span as it was typed: a number of seconds, or a number with a unit, such as 90s, 30m or 2h.
struct TimeLimit: ExpressibleByArgument, CustomStringConvertible {
    /// The time span as it was typed.
    let description: String
    private let seconds: Double

    init?(argument: String) {
        let units: [Character: Double] = ["s": 1, "m": 60, "h": 3600]
        let unit = argument.last.flatMap { units[$0] }
        guard let number = Double(unit == nil ? argument : String(argument.dropLast())) else { return nil }
        description = argument
        seconds = number * (unit ?? 1)
    }

    /// Returns the time span.
    /// - Throws: `ValidationError` if it is not positive or is longer than about 30 years.
    func duration() throws -> Duration {
        guard seconds > 0 && seconds < 1e9 else {
            throw ValidationError(
                "--time-limit is \(description), expected more than 0 seconds and less than 1000000000, such as 90s, 30m or 2h."
            )
        }
        return .seconds(seconds)
    }

    /// Returns the help of the option.
    /// - Parameter result: The result that is written after the limit.
    static func help(written result: String) -> ArgumentHelp {
        ArgumentHelp(
            "The time limit, after which \(result) is written: seconds, or a number with a unit, such as 90s, 30m or 2h.",
            valueName: "time")
    }
}
