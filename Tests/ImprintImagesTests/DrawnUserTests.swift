import Foundation
import TestSupport
import Testing

@testable import ImprintImages
@testable import ImprintSynthesis

private func recipe(_ name: String) throws -> DrawingRecipe {
    try DrawingRecipe(contentsOf: packageFolder.appending(path: "datasets/\(name).json"))
}

/// Returns the properties of a user as 1 or 0; the first three are the styles of the ink.
private func properties(_ shares: DrawingRecipe.Shares) -> [Float] {
    [
        shares.outlined, shares.hatched, shares.worn, shares.handDrawn, shares.plate, shares.lightInk, shares.twoColors,
        shares.busyBackground,
    ]
}

@Suite("Drawn users") struct DrawnUserTests {
    @Test("The same number gives the same user, whose recipe has the labels and the image size of the original")
    func sameNumber() throws {
        let recipe = try recipe("two-circles")
        let user = recipe.ofUser(7)
        #expect(user == recipe.ofUser(7))
        #expect(user.name == "two-circles-user-7")
        #expect(user.description.contains("user 7 of two-circles"))
        #expect(user.labels.map(\.name) == recipe.labels.map(\.name))
        #expect(user.size == recipe.size && user.count == 80 && user.compositing == nil)
        #expect(user.labels[0].logos.map(\.kind) == [.looseTwoCircles])
    }

    @Test("Users differ in their logos, styles, ranges and seeds")
    func usersDiffer() throws {
        let recipe = try recipe("two-circles")
        let users = (1...50).map(recipe.ofUser)
        #expect(Set(users.map(\.seed)).count == 50)
        #expect(Set(users.compactMap { $0.labels[0].logos[0].number }).count == 50)
        #expect(Set(users.map { $0.ranges.rotationDegrees }).count == 50)
        #expect(Set(users.map { $0.labels[1].logos.map(\.kind) }).count > 40)
        #expect(Set(users.map { properties($0.shares) }).count > 25)
        // Some users have each property and some do not.
        for index in properties(recipe.shares).indices {
            let count = users.count { properties($0.shares)[index] == 1 }
            #expect((1..<49).contains(count), "\(count) have property \(index)")
        }
        let logos = users.map { Drawing($0, label: 0, index: 0, seed: 1).logo }
        for (index, logo) in logos.enumerated() { #expect(!logos[..<index].contains(logo)) }
    }

    @Test("A user has one style of ink, has each property always or never, and uses a part of each range")
    func oneStyle() throws {
        let recipe = try recipe("two-circles")
        for user in (1...50).map(recipe.ofUser) {
            #expect(properties(user.shares).allSatisfy { $0 == 0 || $0 == 1 })
            #expect(properties(user.shares)[..<3].reduce(0, +) <= 1)
            for range in [
                \DrawingRecipe.Ranges.span, \.rotationDegrees, \.tiltDegrees, \.blur, \.noise,
            ] {
                let (part, whole) = (user.ranges[keyPath: range], recipe.ranges[keyPath: range])
                #expect(whole.contains(part.lowerBound) && whole.contains(part.upperBound))
                let share = (part.upperBound - part.lowerBound) / (whole.upperBound - whole.lowerBound)
                #expect((0.2...0.51).contains(share))
            }
        }
    }

    @Test("A user's logos are the same in every image and with every seed", arguments: [1, 2, 3, 4, 5])
    func sameLogos(number: Int) throws {
        let user = try recipe("two-circles").ofUser(number)
        for (label, content) in user.labels.enumerated() {
            var logos: [LogoKind: DrawnLogo] = [:]
            for index in 0..<60 {
                let drawing = Drawing(user, label: label, index: index, seed: UInt64(index % 3))
                #expect(logos[drawing.kind, default: drawing.logo] == drawing.logo)
                logos[drawing.kind] = drawing.logo
            }
            #expect(Set(logos.keys) == Set(content.logos.map(\.kind)))
        }
    }

    @Test("Hard negatives have two or three kinds, never the kind of the logo, and at least one is not in the labels")
    func hardNegatives() throws {
        let recipe = try recipe("two-circles")
        let allowed = Set(try #require(recipe.compositing).hardNegatives.map(\.kind))
        let shown = Set(recipe.labels.flatMap(\.logos).map(\.kind))
        var all: Set<LogoKind> = []
        for user in (1...500).map(recipe.ofUser) {
            let kinds = user.labels[1].logos.map(\.kind)
            #expect((2...3).contains(kinds.count) && Set(kinds).count == kinds.count)
            #expect(allowed.isSuperset(of: kinds) && !shown.isSuperset(of: kinds))
            #expect(Set(kinds).isDisjoint(with: [.twoCircles, .looseTwoCircles, .nothing]))
            #expect(user.labels.flatMap(\.logos).allSatisfy { $0.number != nil && $0.weight == 1 })
            all.formUnion(kinds)
        }
        #expect(all == allowed)
    }

    @Test("Hard negatives exclude the kinds of the first label and the kind nothing, unless there is no other kind")
    func excludedKinds() throws {
        func user(_ logo: [LogoKind], _ others: [LogoKind]) throws -> [[LogoKind]] {
            let shapes = try recipe("shapes")
            let labels = [("A", logo), ("B", others)].map { name, kinds in
                DrawingRecipe.Label(
                    name: name, logos: kinds.map { DrawingRecipe.WeightedLogo(kind: $0, weight: 1) })
            }
            let recipe = DrawingRecipe(
                format: 1, name: "own", description: "", size: 32, labels: labels, count: 2, seed: 1,
                ranges: shapes.ranges, shares: shapes.shares, compositing: nil)
            return recipe.ofUser(3).labels.map { $0.logos.map(\.kind).sorted { $0.rawValue < $1.rawValue } }
        }
        #expect(try user([.ring, .nothing], [.ring, .nothing, .squares, .glyph]) == [[.ring], [.glyph, .squares]])
        #expect(try user([.ring], [.nothing]) == [[.ring], [.nothing]])
    }

    @Test("The recipe of a user is valid", arguments: ["two-circles", "shapes", "marks"])
    func valid(name: String) throws {
        let recipe = try recipe(name)
        for user in [1, 2, 3, 100_000].map(recipe.ofUser) {
            let file = URL(filePath: "\(user.name).json")
            #expect(try DrawingRecipe(JSONEncoder().encode(user), file: file) == user)
            #expect(user.count == 40 * recipe.labels.count)
        }
    }

    @Test("Labels that are separate logos keep their kinds and numbers")
    func moreThanTwoLabels() throws {
        let shapes = try recipe("shapes")
        let user = shapes.ofUser(4)
        #expect(user.labels.map { $0.logos.map(\.kind) } == [[.ring], [.squares], [.triangles]])
        #expect(user.labels.allSatisfy { $0.logos[0].number != nil })
        #expect(user.labels != shapes.ofUser(5).labels)

        let logos = try recipe("marks")
        #expect(logos.ofUser(4).labels == logos.labels)
    }
}
