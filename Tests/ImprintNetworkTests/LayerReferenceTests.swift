import Foundation
import TestSupport
import Testing

@testable import ImprintNetwork

@Suite struct LayerReferenceTests {
    private static func page(_ name: String) throws -> String {
        try String(contentsOf: packageFolder.appending(path: "docs/reference/\(name)"), encoding: .utf8)
    }

    @Test("docs/reference/layers.md lists every kind of layer with its properties")
    func layers() throws {
        let page = try Self.page("layers.md")
        let sections = page.split(separator: "\n### ")
        let rows = page.split(separator: "\n").filter { $0.hasPrefix("| `") }
        for layer in NetworkTests.layers {
            let kind = type(of: layer).kind
            let description = try #require(
                sections.first { $0.hasPrefix("\(kind)\n") } ?? rows.first { $0.hasPrefix("| `\(kind)` |") },
                "layers.md has no section or row of \(kind)")
            let node = try JSONEncoder().encode(Network.Node(name: "a", layer: layer, inputs: ["input"]))
            let object = try #require(try JSONSerialization.jsonObject(with: node) as? [String: Any])
            let properties = try #require(object["properties"] as? [String: Any])
            for property in properties.keys {
                #expect(description.contains("`\(property)`"), "\(kind) has the property \(property)")
            }
        }
    }

    @Test("docs/reference/networks.md lists every ready-made network")
    func networks() throws {
        let page = try Self.page("networks.md")
        for name in Network.readyMadeNames {
            #expect(page.contains("\n| `\(name)` |"), "networks.md has no row of \(name)")
        }
    }
}
