import Foundation
import ImprintImages
import Testing

@testable import ImprintTraining

@Suite struct COCODocumentTests {
    @Test("A box with a label that is not in the list adds its category, in both forms of the file")
    func newLabel() throws {
        var document = COCODocument(labels: ["cat"], roundsBoxes: true)
        document.addImage("a.png", width: 200, height: 100)
        let box = NormalizedRectangle(x: 0.25, y: 0.5, width: 0.5, height: 0.25)
        for label in ["dog", "cat", "dog"] { document.addBox(label, box) }
        for data in [try document.data(), try document.lines(header: "{")] {
            let content = try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any])
            let categories = try #require(content["categories"] as? [[String: Any]])
            #expect(categories.map { $0["name"] as? String } == ["cat", "dog"])
            #expect(categories.map { $0["id"] as? Int } == [1, 2])
            let annotations = try #require(content["annotations"] as? [[String: Any]])
            #expect(annotations.map { $0["category_id"] as? Int } == [2, 1, 2])
            #expect(annotations.first?["bbox"] as? [Double] == [50, 50, 100, 25])
        }
    }
}
