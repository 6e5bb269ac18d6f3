import Foundation
import TestSupport
import Testing

@testable import ImprintImages

/// Captions and boxes on copies of photos.
@Suite struct ImageAnnotationTests {
    @Test("The font has every printable ASCII character, and no two look the same")
    func font() {
        let letters = (0x21..<0x7F).map { Character(UnicodeScalar(UInt8($0))) }
        let drawings = letters.map { letter in
            var image = RasterImage(width: 30, height: 50)
            image.draw(String(letter), left: 3, top: 3, unit: 5, color: [255, 255, 255])
            return image.samples
        }
        #expect(drawings.allSatisfy { $0.contains(255) })
        #expect(Set(drawings).count == letters.count)
    }

    @Test(
        "Text in other scripts is transliterated",
        arguments: [
            ("Größe é", "Grosse e"), ("Москва", "Moskva"), ("猫 – “cat”", "mao - \"cat\""), ("a\u{1F600}b", "a?b"),
            ("x\ty", "x y"), ("50 %", "50 %"), ("", ""),
        ])
    func letters(text: String, expected: String) {
        let letters = StrokeFont.letters(of: text)
        #expect(letters == expected)
        #expect(letters.allSatisfy { StrokeFont.strokes[$0] != nil })
    }

    @Test(
        "Any size of photo, box and caption can be drawn",
        arguments: [(1, 1, 3), (3000, 2, 3), (2, 900, 1), (40, 30, 4), (1500, 1200, 3)])
    func sizes(width: Int, height: Int, channels: Int) throws {
        let photo = RasterImage(width: width, height: height, channels: channels, filledWith: 128)
        let annotation = ImageAnnotation(
            captions: ["", String(repeating: "long ", count: 100)],
            boxes: [
                .init(.all, caption: "all 1 %"),
                .init(NormalizedRectangle(x: -1, y: 0.5, width: 9, height: 0), caption: ""),
                .init(NormalizedRectangle(x: 0.99, y: 0.99, width: 0.5, height: 0.5), caption: "corner"),
            ])
        let image = annotation.drawn(on: photo)
        #expect(image.channels == 3 && image.width % width == 0 && image.height > image.width / width * height)
        #expect(image.samples.contains(24))
        // A photo of a few columns has no room for text.
        #expect(width == 2 || image.samples.contains(255))
    }

    @Test(
        "A copy of a photo that is too long for a JPEG is scaled down to its limit",
        arguments: [(66_000, 20), (20, 66_000)])
    func panorama(width: Int, height: Int) throws {
        try withTemporaryFolder { folder in
            let photo = folder.appending(path: "photo.png")
            try ImageFile.write(RasterImage(width: width, height: height, filledWith: 200), to: photo)
            let bytes = try ImageAnnotation(captions: ["a", "b", "c"]).copy(of: photo, source: "photo")
            let copy = folder.appending(path: "copy.jpg")
            try Data(bytes).write(to: copy)
            let image = try ImageFile.information(of: copy)
            #expect((60_000...ImageFile.jpegSideLimit).contains(max(image.width, image.height)))
            #expect(min(image.width, image.height) < 150)
        }
    }

    @Test("A copy is upright, scaled down, and recognized by its photo")
    func copy() throws {
        try withTemporaryFolder { folder in
            let photo = folder.appending(path: "photo.png")
            try ImageFile.write(RasterImage(width: 1300, height: 1200, filledWith: 200), to: photo)
            let copy = folder.appending(path: "copy.jpg")
            let bytes = try ImageAnnotation(captions: ["dark 50.0 %"]).copy(of: photo, source: "photo")
            try Data(bytes).write(to: copy)
            let image = try ImageFile.decode(copy)
            #expect(image.width == 1170 && image.height > 1080)
            #expect(ImageAnnotation.isCopy(copy, of: "photo") && !ImageAnnotation.isCopy(copy, of: "photo 2"))
            #expect(!ImageAnnotation.isCopy(photo, of: "photo"))
            #expect(!ImageAnnotation.isCopy(folder.appending(path: "missing"), of: "photo"))
            let pipe = folder.appending(path: "pipe.jpg")
            try #require(mkfifo(pipe.path, 0o600) == 0)
            #expect(!ImageAnnotation.isCopy(pipe, of: "photo"))
        }
    }
}
