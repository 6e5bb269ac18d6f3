/// The unique names of an exported model's tensors.
struct ExportedNames {
    private var used: Set<String>

    /// Reserves these names.
    init(reserving names: [String]) { used = Set(names) }

    /// Returns an unused name: the preferred name or, if it is taken or empty, a similar one.
    mutating func unique(_ wanted: String) -> String {
        var name = wanted.isEmpty ? "unnamed" : wanted
        while !used.insert(name).inserted { name += "_" }
        return name
    }
}
