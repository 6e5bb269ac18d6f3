import Foundation
import TestSupport
import Testing

@Suite struct DocumentedManifestTests {
    @Test("SwiftPM accepts the package manifests of the pages, and Imprint has their products and plugins")
    func manifests() throws {
        let start = "// swift-tools-version"
        var count = 0
        for name in try packageFiles(in: "docs", extension: "md") where !name.hasPrefix("docs/api/") {
            let page = try String(contentsOf: packageFolder.appending(path: name), encoding: .utf8)
            for block in page.components(separatedBy: "```swift\n\(start)").dropFirst() {
                try withTemporaryFolder { folder in
                    let manifest = start + block.components(separatedBy: "```")[0]
                    try Data(manifest.utf8).write(to: folder.appending(path: "Package.swift"))
                    #expect(try !targets(ofPackage: folder).isEmpty, "\(name)")
                }
                count += 1
            }
        }
        #expect(count >= 4)
    }
}

/// Reads the targets of a package, and checks that Imprint has the products and plugins that they use.
func targets(ofPackage folder: URL) throws -> [[String: Any]] {
    let dump = try swift("package", "--package-path", folder.path, "dump-package")
    let manifest = try? JSONSerialization.jsonObject(with: Data(dump.output.utf8)) as? [String: Any]
    let targets = try #require(manifest?["targets"] as? [[String: Any]], "\(dump.errors)")
    let package = try String(contentsOf: packageFolder.appending(path: "Package.swift"), encoding: .utf8)
    let start = try #require(package.range(of: "products: ["))
    let end = try #require(package.range(of: "traits: [", range: start.upperBound..<package.endIndex))
    let products = package[start.upperBound..<end.lowerBound]
    for target in targets {
        for dependency in target["dependencies"] as? [[String: Any]] ?? [] {
            let product = try #require((dependency["product"] as? [Any])?.first as? String)
            #expect(products.contains("name: \"\(product)\""), "there is no product \(product)")
        }
        for usage in target["pluginUsages"] as? [[String: Any]] ?? [] {
            let plugin = try #require((usage["plugin"] as? [Any])?.first as? String)
            #expect(products.contains(".plugin(name: \"\(plugin)\""), "there is no plugin \(plugin)")
        }
    }
    return targets
}
