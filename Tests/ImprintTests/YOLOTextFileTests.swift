import Foundation
import ImprintTraining
import TestSupport
import Testing

@Suite("Text files of YOLO photos") struct YOLOTextFileTests {
    @Test(
        "The extension of a text file can have capital letters",
        arguments: ["labels/a.TXT", "labels/a.Txt", "images/a.TXT"],
        [["classes.txt": "cat\ndog"], ["data.yaml": "names: [cat, dog]\ntrain: images"]])
    func capitalLetters(path: String, names: [String: String]) throws {
        try withAnnotatedPhotos(names.merging([path: "1 .5 .5 .5 .5"]) { $1 }) { folder in
            let annotations = try BoxAnnotations(contentsOf: folder)
            #expect(annotations.photos.map(boxTexts) == [["dog 50 25 100 50"], []])
            let warnings = annotations.warnings
            #expect(!warnings.contains { $0.contains("text files without a photo") }, "\(warnings)")
        }
    }

    @Test(
        "The error about a class that cannot be a number of a class describes the numbers",
        arguments: [
            ("[cat, dog]", "-1", "a whole number from 0 to 1"), ("[a, b, c]", "0.5", "a whole number from 0 to 2"),
            ("[cat]", "-1", "a whole number: class 0"), ("{0: a, 2: b}", "1e300", "a whole number: class 0 or 2"),
            ("[cat, dog]", "nan", "a whole number from 0 to 1"),
        ])
    func impossibleClass(names: String, number: String, expected: String) throws {
        try withAnnotatedPhotos(["data.yaml": "names: \(names)", "labels/a.txt": "\(number) .5 .5 .5 .5"]) { folder in
            let error = #expect(throws: BoxAnnotationsError.self) { try BoxAnnotations(contentsOf: folder) }
            let message = "labels/a.txt: line 1: found the class \(number). Expected \(expected). Correct the entry."
            #expect(error?.description.hasSuffix(message) == true, "\(error?.description ?? "")")
        }
    }

    @Test(
        "A text file that is a folder or a broken link is an error that names it", arguments: [true, false],
        [["classes.txt": "cat"], ["data.yaml": "names: [cat]\ntrain: images"]])
    func unusable(isLink: Bool, names: [String: String]) throws {
        try withAnnotatedPhotos(names.merging(["labels/sub/b.txt": "0 .5 .5 .5 .5"]) { $1 }) { folder in
            let text = folder.appending(path: "labels/a.txt")
            if isLink {
                let target = folder.appending(path: "missing.txt")
                try FileManager.default.createSymbolicLink(at: text, withDestinationURL: target)
            } else {
                try FileManager.default.createDirectory(at: text, withIntermediateDirectories: true)
            }
            let error = #expect(throws: BoxAnnotationsError.self) { try BoxAnnotations(contentsOf: folder) }
            let found = isLink ? "a broken symbolic link" : "a folder"
            let message = "labels/a.txt: found \(found). Expected the text file with the boxes of a.png. Replace it, "
            #expect(error?.description.contains(message) == true, "\(error?.description ?? "")")
        }
    }
}
