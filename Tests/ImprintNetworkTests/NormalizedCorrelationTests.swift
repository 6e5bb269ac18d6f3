import ImprintCore
import Testing

@testable import ImprintNetwork

@Suite struct NormalizedCorrelationTests {
    struct Case: CustomTestStringConvertible {
        let height: Int
        let width: Int
        let channels: Int
        let window: Size2D
        let templates: Int
        var testDescription: String { "\(height)x\(width)x\(channels), \(templates) of \(window)" }
    }

    @Test(
        "The correlation of every window with every template agrees with the definition",
        arguments: [
            Case(height: 5, width: 7, channels: 3, window: 3, templates: 2),
            Case(height: 9, width: 4, channels: 16, window: Size2D(height: 6, width: 3), templates: 17),
            Case(height: 2, width: 3, channels: 1, window: Size2D(height: 3, width: 5), templates: 1),
            Case(height: 1, width: 1, channels: 5, window: 1, templates: 8),
            Case(height: 3, width: 40, channels: 4, window: Size2D(height: 1, width: 9), templates: 3),
        ])
    func definition(_ example: Case) throws {
        var random = RandomStream(seed: 3, example.testDescription)
        let map = (0..<(example.height * example.width * example.channels)).map { _ in random.normal() }
        let length = example.window.height * example.window.width * example.channels
        let templates = (0..<example.templates).map { _ in (0..<length).map { _ in random.normal() } }
        let correlation = NormalizedCorrelation(
            window: example.window, channels: example.channels, templates: templates)
        let size = correlation.resultSize(height: example.height, width: example.width)
        #expect(size.rows == example.height + 2 * (example.window.height / 3) - example.window.height + 1)
        #expect(size.columns == example.width + 2 * (example.window.width / 3) - example.window.width + 1)
        let prepared = NormalizedCorrelation.Map(map, height: example.height, width: example.width)
        // In two blocks, as threads compute them.
        let (third, count) = (size.rows * size.columns / 3, size.rows * size.columns)
        let result = try correlation(prepared, windows: 0..<third) + correlation(prepared, windows: third..<count)
        var expected: [Float] = []
        for row in 0..<size.rows {
            for column in 0..<size.columns {
                let window = Self.window(map, example, row, column)
                expected += templates.map { Self.cosine(window, $0) }
            }
        }
        #expect(result.count == expected.count)
        for (found, wanted) in zip(result, expected) { #expect(abs(found - wanted) < 1e-5) }
    }

    /// Returns the window at a position of the result, with zeros outside of the map.
    private static func window(_ map: [Float], _ example: Case, _ row: Int, _ column: Int) -> [Float] {
        var values: [Float] = []
        for y in 0..<example.window.height {
            for x in 0..<example.window.width {
                let mapRow = row + y - example.window.height / 3
                let mapColumn = column + x - example.window.width / 3
                let isInside = (0..<example.height).contains(mapRow) && (0..<example.width).contains(mapColumn)
                for channel in 0..<example.channels {
                    values.append(
                        isInside ? map[(mapRow * example.width + mapColumn) * example.channels + channel] : 0)
                }
            }
        }
        return values
    }

    private static func cosine(_ a: [Float], _ b: [Float]) -> Float {
        let product = zip(a, b).reduce(0) { $0 + $1.0 * $1.1 }
        let energies = a.reduce(0) { $0 + $1 * $1 } * b.reduce(0) { $0 + $1 * $1 }
        return energies > 0 ? product / energies.squareRoot() : 0
    }

    @Test("A window or a template of zeros has a correlation of 0") func zeros() throws {
        let correlation = NormalizedCorrelation(
            window: 1, channels: 2, templates: [[0, 0], [1, 0]])
        let map = NormalizedCorrelation.Map([0, 0, 3, 4], height: 1, width: 2)
        #expect(try correlation(map, windows: 0..<2) == [0, 0, 0, 0.6])
    }

    @Test("A map that is smaller than a window without its padding has no result") func small() throws {
        let correlation = NormalizedCorrelation(
            window: 6, channels: 1, templates: [[Float](repeating: 1, count: 36)])
        #expect(correlation.resultSize(height: 1, width: 9) == (0, 8))
    }
}
