import Foundation
import ImprintImages
import ImprintModel
import ImprintStudio
import ImprintTraining
import TestSupport
import Testing

/// The requests of the panel Logo: labels of artwork, composites, matching, and training with an early end.
@Suite("Artwork in the studio") struct StudioLogoTests {
    private struct Model: Decodable {
        let version: Int
        let name: String?
        let labels: [String]
        let objectLabels: [String]?
        let isMatching: Bool
    }

    private struct Boxes: Decodable {
        struct Artwork: Decodable {
            let id: Int
            let label: String
            let notes: [String]
        }
        let artwork: [Artwork]
    }

    private struct Classified: Decodable {
        struct Item: Decodable {
            let label: String
            let confidence: Float
            let box: NormalizedRectangle?
        }
        let classifications: [Item]
        let modelVersion: Int
        let rejected: Bool
        let objects: [Item]?

        private enum CodingKeys: String, CodingKey {
            case classifications = "observations"
            case modelVersion, rejected, objects
        }
    }

    @Test("Artwork gets another label, and composites show it") func labels() async throws {
        try await StudioSamples.withStudio(hasModel: false) { studio, _ in
            let client = try await StudioClient.enter(studio).client
            let missing = try await client.ask("GET", "composites", ["seed": "1"])
            #expect(missing.status == 409 && missing.error?.contains("no artwork") == true)
            let small = try LogoSamples.artwork(side: 40)
            let added: Boxes = try StudioClient.decoded(
                try await client.ask("POST", "artwork", ["label": "leaf", "name": "leaf.png"], small))
            #expect(added.artwork.count == 1 && added.artwork[0].notes.contains { $0.hasPrefix("leaf.png: ") })
            let id = "\(added.artwork[0].id)"
            let renamed: Boxes = try StudioClient.decoded(
                try await client.ask("PUT", "artwork", ["id": id, "label": "Leaf & <b>"]))
            #expect(renamed.artwork.map(\.label) == ["Leaf & <b>"] && renamed.artwork[0].id == added.artwork[0].id)
            for label in ["", " leaf", ImageFolder.noLogoLabel, "a\nb", String(repeating: "x", count: 101)] {
                #expect(try await client.ask("PUT", "artwork", ["id": id, "label": label]).status == 400)
            }
            #expect(try await client.ask("PUT", "artwork", ["id": "99", "label": "leaf"]).status == 404)
            #expect(try await client.ask("PUT", "artwork", ["id": id]).status == 400)
            let first = try await client.ask("GET", "composites", ["seed": "1"])
            let again = try await client.ask("GET", "composites", ["seed": "1"])
            let other = try await client.ask("GET", "composites", ["seed": "2"])
            #expect(first.status == 200 && first.headers["content-type"] == "image/jpeg")
            #expect(first.body == again.body && first.body != other.body)
            for seed in ["", "-1", "x", "99999999999999999999"] {
                #expect(try await client.ask("GET", "composites", ["seed": seed]).status == 400)
            }
        }
    }

    @Test("Matching replaces the model until it ends, and finds the logo in a photo") func matching() async throws {
        try await StudioSamples.withStudio { studio, _ in
            let client = try await StudioClient.enter(studio).client
            let early = try await client.ask("POST", "matching")
            #expect(early.status == 409 && early.error?.contains("no artwork") == true)
            #expect(
                try await client.ask("POST", "artwork", ["label": "leaf"], try LogoSamples.artwork(side: 128)).status
                    == 200)
            let before: Model = try StudioClient.decoded(try await client.ask("GET", "model"))
            #expect(before.name == "bright" && !before.isMatching && before.objectLabels == nil)
            let matching: Model = try StudioClient.decoded(try await client.ask("POST", "matching"))
            #expect(matching.isMatching && matching.name == "Matching of the artwork")
            #expect(matching.labels == ["leaf"] && matching.objectLabels == ["leaf"])
            let found: Classified = try StudioClient.decoded(
                try await client.ask("POST", "classify", [:], try LogoSamples.photo()))
            #expect(found.classifications.map(\.label) == ["leaf"] && !found.rejected)
            #expect(found.modelVersion == matching.version && matching.version > before.version)
            let objects = try #require(found.objects)
            #expect(objects.map(\.label) == ["leaf"])
            // The logo covers the middle of the photo.
            let box = try #require(objects.first?.box)
            #expect(abs(box.x + box.width / 2 - 0.5) < 0.1 && abs(box.y + box.height / 2 - 0.5) < 0.1)
            #expect(try await client.ask("POST", "classify", [:], Data("no image".utf8)).status == 422)
            let after: Model = try StudioClient.decoded(try await client.ask("DELETE", "matching"))
            #expect(after.name == "bright" && !after.isMatching && after.labels == before.labels)
            let bright: Classified = try StudioClient.decoded(
                try await client.ask("POST", "classify", [:], try LogoSamples.photo()))
            #expect(bright.modelVersion == after.version && after.version > matching.version)
        }
    }

    @Test("A logo that is too long cannot be matched, and the model stays") func tooLong() async throws {
        try await StudioSamples.withStudio(hasModel: false) { studio, _ in
            let client = try await StudioClient.enter(studio).client
            var line = RasterImage(width: 240, height: 24, channels: 4)
            for index in 0..<240 {
                for (channel, value) in [10, 20, 120, 255].enumerated() {
                    for row in 10..<14 { line.samples[(row * 240 + index) * 4 + channel] = UInt8(value) }
                }
            }
            let bytes = Data(try ImageFile.encodePNG(line))
            #expect(try await client.ask("POST", "artwork", ["label": "line"], bytes).status == 200)
            let refused = try await client.ask("POST", "matching")
            #expect(refused.status == 422 && refused.error?.hasPrefix("Matching is not possible: ") == true)
            let model: Model = try StudioClient.decoded(try await client.ask("GET", "model"))
            #expect(model.name == nil && !model.isMatching)
        }
    }

    @Test("Requests about artwork need access, and changes need the origin of the page") func access() async throws {
        try await StudioSamples.withStudio(hasModel: false) { studio, _ in
            var client = try await StudioClient.enter(studio).client
            let stranger = StudioClient(url: client.url)
            for (method, path) in [
                ("GET", "composites"), ("PUT", "artwork"), ("POST", "matching"), ("DELETE", "matching"),
            ] {
                #expect(try await stranger.ask(method, path, ["seed": "1"]).status == 403)
            }
            client.origin = "http://example.com"
            for (method, path) in [("PUT", "artwork"), ("POST", "matching"), ("DELETE", "matching")] {
                #expect(try await client.ask(method, path).status == 403)
            }
        }
    }

    @Test("A run can only end with a detector after its first phase") func keep() async throws {
        try await withTemporaryFolder { folder in
            let studio = try await Studio(
                nil, installer: StudioSamples.installer(folder), detectorConfiguration: LogoSamples.configuration)
            let client = try await StudioClient.enter(studio).client
            let idle = try await client.ask("DELETE", "training", ["keep": "best"])
            #expect(idle.status == 409 && idle.error?.contains("nothing to keep") == true)
            let empty = try await client.ask("POST", "detector", ["length": "short", "data": "artwork"])
            #expect(empty.status == 409 && empty.error?.contains("add artwork") == true)
            await studio.stop()
        }
    }
}

/// Artwork, a photo that shows it, and a configuration for a few steps.
enum LogoSamples {
    /// Two phases of small batches: the first one is short, and the second one runs until it is stopped.
    static var configuration: DetectorConfiguration {
        var configuration = DetectorConfiguration()
        configuration.rehearsalImages = 0
        configuration.pyramidLevels = shortPyramidLevels
        configuration.poolSize = 1
        configuration.batchSize = 4
        configuration.phases = [3, 100_000].map {
            DetectorPhase(
                steps: $0, learningRate: 1e-3, composites: 0.5, hardNegatives: 0.25, background: 0.25, mined: 0,
                located: 0)
        }
        return configuration
    }

    /// Returns the colour of a logo at a position of a square, 0…1; nil outside of the logo.
    private static func color(_ x: Double, _ y: Double) -> [UInt8]? {
        if abs(x - 0.5) < 0.06, y > 0.45, y < 0.95 { return [30, 60, 140] }
        if y > 0.05, y < 0.5, abs(x - 0.5) < (y - 0.05) / 3 { return [220, 60, 30] }
        if (x - 0.5) * (x - 0.5) / 0.16 + (y - 0.5) * (y - 0.5) / 0.09 < 1 { return [30, 140, 60] }
        return nil
    }

    /// Returns a logo with a transparent background, as a PNG.
    static func artwork(side: Int) throws -> Data {
        var image = RasterImage(width: side, height: side, channels: 4)
        for row in 0..<side {
            for column in 0..<side {
                guard let color = color(Double(column) / Double(side), Double(row) / Double(side)) else { continue }
                for (channel, value) in (color + [255]).enumerated() {
                    image.samples[(row * side + column) * 4 + channel] = value
                }
            }
        }
        return Data(try ImageFile.encodePNG(image))
    }

    /// Returns a grey photo with the logo in its middle, as a JPEG.
    static func photo() throws -> Data {
        let (width, height, side) = (480, 360, 150)
        var image = RasterImage(width: width, height: height)
        for index in image.samples.indices { image.samples[index] = 128 }
        for row in 0..<side {
            for column in 0..<side {
                guard let color = color(Double(column) / Double(side), Double(row) / Double(side)) else { continue }
                let index = ((row + (height - side) / 2) * width + column + (width - side) / 2) * 3
                for (channel, value) in color.enumerated() { image.samples[index + channel] = value }
            }
        }
        return Data(try ImageFile.encodeJPEG(image))
    }
}
