import Foundation
import Imprint
import ImprintCore
import ImprintImages

struct NormalizedRectangle {
    var x, y, width, height: Float; static let all = NormalizedRectangle(x: 0, y: 0, width: 1, height: 1)
}
enum ImageSource { case data(Data) }
struct ClassificationRequest {
    let classifier: ImageClassifier
    var regionOfInterest = NormalizedRectangle.all
    init(_ c: ImageClassifier) { classifier = c }
    func perform(on source: ImageSource) async throws -> [Observation] {
        guard case .data(let data) = source else { return [] }
        return try await onThreadOfItsOwn { [classifier] in try file(data) { try classifier.classify($0) } }
    }
}
func file<V>(_ data: Data, _ body: (URL) throws -> V) throws -> V {
    let f = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
    defer { try? FileManager.default.removeItem(at: f) }
    try data.write(to: f)
    return try body(f)
}
func image(_ data: Data) throws -> Image { try file(data) { try ImageFile.decode($0) } }
