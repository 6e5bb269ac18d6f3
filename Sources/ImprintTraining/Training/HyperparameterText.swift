/// A hyperparameter as text, for checkpoints, their error messages and reports.
struct HyperparameterText: Hashable {
    /// The name of the property, such as "fineTuning".
    let property: String
    /// The name in words, such as "label smoothing"; a value in a nested struct has a name of two parts, such as "fine tuning.layer decay".
    let name: String
    /// The value; "none" for nil.
    let value: String

    /// Returns an entry for each property of a struct of hyperparameters, in the order of their declaration.
    ///
    /// A property that is itself a struct has an entry for each of its properties, unless it describes itself (`CustomStringConvertible`).
    static func list(_ hyperparameters: some Any) -> [Self] {
        Mirror(reflecting: hyperparameters).children.flatMap { child in
            let property = child.label ?? ""
            return entries(words(property), child.value).map {
                Self(property: property, name: $0.name, value: $0.value)
            }
        }
    }

    private static func entries(_ name: String, _ value: Any) -> [(name: String, value: String)] {
        let mirror = Mirror(reflecting: value)
        if mirror.displayStyle == .optional, let wrapped = mirror.children.first { return entries(name, wrapped.value) }
        guard mirror.displayStyle == .struct, !(value is any CustomStringConvertible) else {
            return [(name, text(value))]
        }
        return mirror.children.flatMap { entries("\(name).\(words($0.label ?? ""))", $0.value) }
    }

    private static func text(_ value: Any) -> String {
        let mirror = Mirror(reflecting: value)
        func parts() -> [String] { mirror.children.map { text($0.value) } }
        switch mirror.displayStyle {
        case .optional: return parts().first ?? "none"
        case .collection: return mirror.children.isEmpty ? "empty" : parts().joined(separator: "; ")
        // The order of sets and dictionaries differs from run to run.
        case .set, .dictionary: return mirror.children.isEmpty ? "empty" : parts().sorted().joined(separator: "; ")
        // A key and a value of a dictionary.
        case .tuple: return parts().joined(separator: ": ")
        case .struct where !(value is any CustomStringConvertible):
            return mirror.children.map { "\(words($0.label ?? "")) \(text($0.value))" }.joined(separator: ", ")
        default: break
        }
        if let value = value as? Bool { return value ? "yes" : "no" }
        if let value = value as? any RawRepresentable { return "\(value.rawValue)" }
        return "\(value)"
    }

    /// Converts "labelSmoothing" to "label smoothing" and "emaDecay" to "EMA decay".
    static func words(_ name: String) -> String {
        let words = name.reduce(into: "") { $0 += $1.isUppercase ? " \($1.lowercased())" : String($1) }
        return words.split(separator: " ").map { $0 == "ema" ? "EMA" : String($0) }.joined(separator: " ")
    }
}
