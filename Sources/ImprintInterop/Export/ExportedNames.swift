/// The names of an exported model's values, each of which may be there once.
struct ExportedNames {
    private var used: Set<String>

    /// Names of which these are taken.
    init(reserving names: [String]) { used = Set(names) }

    /// A name that is not taken yet: the one that is wanted or, if it is taken or empty, one like it.
    mutating func unique(_ wanted: String) -> String {
        var name = wanted.isEmpty ? "unnamed" : wanted
        while !used.insert(name).inserted { name += "_" }
        return name
    }
}
