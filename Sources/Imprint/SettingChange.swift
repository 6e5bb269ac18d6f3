internal import ImprintCore

/// Describes the change of a setting for an error, such as "another setting of validation: it was automatic and is now 0.3 of the photos".
/// - Parameters:
///   - name: The name of the setting in a checkpoint, such as "uses mixed precision".
///   - earlier: The earlier value, as a checkpoint stores it; "none" if the checkpoint lacks it.
///   - value: The present value.
package func settingChange(_ name: String, from earlier: String, to value: String) -> String {
    let shownName =
        switchNames[name]
        ?? name.split(separator: ".").reversed().joined(separator: " of the ").replacing(
            "fine tuning", with: "fine-tuning")
    let values = visibleNames([settingText(earlier, of: name), settingText(value, of: name)])
    return "another setting of \(shownName): it was \(values[0]) and is now \(values[1])"
}

/// The names of settings that are on or off, in words.
private let switchNames = [
    "is multi label": "several labels per photo", "keeps groups together": "keeping near-duplicates together",
    "uses mixed precision": "mixed precision", "pools maximum": "maximum pooling",
    "fine tuning.freezes statistics": "frozen batch statistics",
]

/// Returns the value of a setting in words.
private func settingText(_ value: String, of name: String) -> String {
    // Checkpoints lack some settings that are off.
    if switchNames[name] != nil, value == "none" { return "no" }
    if name == "artwork" {
        // The names of the artwork of each logo, which may have none.
        let logos = value.split(separator: "; ", omittingEmptySubsequences: false)
        return logos.map { $0.hasPrefix(" of ") ? "no artwork\($0)" : String($0) }.joined(separator: "; ")
    }
    if name == "validation", value.hasPrefix("fraction("), value.hasSuffix(")") {
        return "\(value.dropFirst("fraction(".count).dropLast()) of the photos"
    }
    return value
}
