/// Sets that grow together: which of `0..<count` belong together when pairs are joined one by one.
struct UnionFind {
    /// The parent of each; the smallest member of a set is its own.
    private var parents: [Int]

    init(count: Int) { parents = Array(0..<count) }

    /// The smallest member of the set that `member` belongs to.
    mutating func root(of member: Int) -> Int {
        var member = member
        while parents[member] != member {
            parents[member] = parents[parents[member]]
            member = parents[member]
        }
        return member
    }

    /// Makes one set of those of `a` and `b`.
    mutating func join(_ a: Int, _ b: Int) {
        let (a, b) = (root(of: a), root(of: b))
        parents[max(a, b)] = min(a, b)
    }

    /// The sets of two or more, each in order, by their smallest members.
    mutating func sets() -> [[Int]] {
        var members: [Int: [Int]] = [:]
        for member in parents.indices { members[root(of: member), default: []].append(member) }
        return members.filter { $0.value.count > 1 }.sorted { $0.key < $1.key }.map(\.value)
    }
}
