/// Returns a value for a message, such as "0" for both 0 and 0.0: a whole number has no fraction, as a person types it.
package func messageText(_ value: Any) -> String {
    let text = "\(value)"
    return value is any BinaryFloatingPoint && text.hasSuffix(".0") ? String(text.dropLast(2)) : text
}

/// Formats a count with its noun, such as "2 photos" and "1 byte".
package func counted(_ count: Int, _ noun: String) -> String { "\(count) \(noun)\(count == 1 ? "" : "s")" }

/// Joins the items of a list with commas and "and", such as "a, b and c".
package func listed(_ items: [String]) -> String {
    guard let last = items.last, items.count > 1 else { return items.first ?? "" }
    return "\(items.dropLast().joined(separator: ", ")) and \(last)"
}

/// Formats the progress of a run, such as "3 of 20 epochs"; "5 epochs" if a resumed run has a smaller maximum than it had before.
package func progressText(_ done: Int, of maximum: Int, _ noun: String) -> String {
    done > maximum ? counted(done, noun) : "\(done) of \(counted(maximum, noun))"
}

/// The unit of progress of a training run in messages: a detector trains in phases.
package func progressUnit(isDetector: Bool) -> String { isDetector ? "phase" : "epoch" }

/// Formats a duration like a clock: "1:05" for 65 seconds, "2:00:00" for two hours.
package func clockTime(_ seconds: Double) -> String {
    let whole = Int(min(max(seconds, 0), 1e9).rounded())
    func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
    let (hours, minutes) = (whole / 3600, whole / 60 % 60)
    return hours > 0 ? "\(hours):\(two(minutes)):\(two(whole % 60))" : "\(minutes):\(two(whole % 60))"
}
