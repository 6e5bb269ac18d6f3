/// A union-find structure: disjoint sets of `0..<count`, joined pair by pair.
package struct UnionFind {
    /// The parent of each element; the smallest element of a set is its own parent.
    private var parents: [Int]

    package init(count: Int) { parents = Array(0..<count) }

    /// Returns the smallest element of the set that contains `member`.
    package mutating func root(of member: Int) -> Int {
        var member = member
        while parents[member] != member {
            parents[member] = parents[parents[member]]
            member = parents[member]
        }
        return member
    }

    /// Joins the sets of `a` and `b`.
    package mutating func join(_ a: Int, _ b: Int) {
        let (a, b) = (root(of: a), root(of: b))
        parents[max(a, b)] = min(a, b)
    }

    /// Returns the sets of two or more elements, each in order, sorted by their smallest elements.
    package mutating func sets() -> [[Int]] {
        var members: [Int: [Int]] = [:]
        for member in parents.indices { members[root(of: member), default: []].append(member) }
        return members.filter { $0.value.count > 1 }.sorted { $0.key < $1.key }.map(\.value)
    }
}
