import Imprint
import Testing

@testable import imprint_cli

/// The rows of `--csv`, and the names of copies.
@Suite struct PhotoTableTests {
    private static func result(_ confidences: [Float], _ verdict: NoveltyVerdict? = nil) -> PhotoResult {
        PhotoResult(
            file: "a.png", classifications: confidences.map { Classification(label: "dog", confidence: $0) },
            verdict: verdict)
    }

    private static func verdict(_ novelty: Float?, rejected: Bool = false) -> NoveltyVerdict {
        NoveltyVerdict(novelty: novelty, isRejected: rejected)
    }

    @Test(
        "The rows of a model with a novelty rule end with the verdict",
        arguments: [
            (result([0.5], verdict(0.25)), "a.png,1,dog,0.5,,0.25,false"),
            (result([0.5], verdict(nil)), "a.png,1,dog,0.5,,,false"),
            (result([0.5], verdict(1.5, rejected: true)), "a.png,,,,,1.5,true"),
            (result([], verdict(0.25)), "a.png,,,,,0.25,false"),
            (
                result([0.75, 0.25], verdict(0.25)),
                "a.png,1,dog,0.75,,0.25,false\na.png,2,dog,0.25,,0.25,false"
            ),
        ])
    func verdicts(result: PhotoResult, row: String) {
        let table = PhotoTable(hasBoxes: false, hasVerdicts: true)
        #expect(table.header == "file,rank,label,confidence,error,novelty,rejected")
        #expect(table.rows(result) == row)
        #expect(table.row(PhotoFailureLine(file: "a.png", error: "no")) == "a.png,,,,no,,")
    }

    @Test("Without a novelty rule, the rows have no verdict") func noVerdicts() {
        let table = PhotoTable(hasBoxes: false, hasVerdicts: false)
        #expect(table.header == "file,rank,label,confidence,error")
        #expect(table.rows(Self.result([0.5])) == "a.png,1,dog,0.5,")
        #expect(table.rows(Self.result([])) == "a.png,,,,")
        #expect(
            PhotoTable(hasBoxes: true, hasVerdicts: true).header
                == "file,rank,label,confidence,x,y,width,height,error,novelty,rejected")
    }

    @Test(
        "Names of copies are distinct and have at most 255 bytes",
        arguments: [
            "photo.png", "photo", ".png", "a." + String(repeating: "x", count: 253), String(repeating: "x", count: 255),
            String(repeating: "ü", count: 125) + ".jpeg", "ü." + String(repeating: "x", count: 252),
        ])
    func copies(name: String) {
        let names = Array(copyNames(name).prefix(120))
        #expect(names.first == name)
        #expect(Set(names).count == 120)
        #expect(names.allSatisfy { !$0.isEmpty && $0.utf8.count <= 255 })
    }

    @Test("A label that is named like the folder of photos without a label has another folder") func folders() {
        let name = SortedCopies.folderName("none of these", noneName: "none of these")
        #expect(name.hasPrefix("none of these-") && name.count == "none of these-".count + 8)
        #expect(SortedCopies.folderName("none of these.", noneName: "none of these") != name)
        #expect(SortedCopies.folderName("no logo", noneName: "none of these") == "no logo")
    }
}
