import Foundation
import TestSupport
import Testing

@testable import ImprintImages
@testable import ImprintSynthesis

@Suite("Image files") struct ImageFileTests {
    @Test(
        "The error for a file that is not an image describes its content",
        arguments: [
            ([], "an empty file"), (Array("hello\n".utf8), "text"), (Array("gr\u{fc}\u{df}e".utf8), "text"),
            (Array("<!DOCTYPE html><html><body>404".utf8), "a web page (HTML)"),
            (Array("  <svg xmlns=\"\">".utf8), "an SVG drawing"), (Array("%PDF-1.7".utf8), "a PDF"),
            (Array("PK\u{3}\u{4}....".utf8), "a ZIP archive"), (Array("{\"a\": 1}".utf8), "JSON"),
            (onnxStart, "an ONNX model"),
            ([8, 7, 0x12, 2, 0x61, 0x62, 0x3A, 9, 0x42, 0], "unknown data"),
            ([0, 1, 2, 3, 4, 5, 6, 7], "unknown data"),
            ([0, 0, 0, 24] + Array("ftypqt  ".utf8), "a video or another media file"), ([0xFF, 0xD8], "unknown data"),
            ([0x1F, 0x8B, 8, 0], "a gzip archive"), (Array(" \n".utf8), "only white space"),
            (Array("<?xml version=\"1.0\"?><a/>".utf8), "XML"),
        ] as [([UInt8], String)])
    func notAnImage(content: [UInt8], found: String) throws {
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "photo.jpg")
            try Data(content).write(to: url)
            #expect(throws: ImageError.notAnImage(file: url, found: found)) { try ImageFile.decode(url) }
            #expect(
                "\(ImageError.notAnImage(file: url, found: found))".contains(
                    "expected an image (JPEG, PNG, WebP or HEIC)"))
        }
    }

    @Test(
        "Errors name unsupported image formats",
        arguments: [
            ([0, 0, 0, 24] + Array("ftypavif".utf8), "AVIF"), (Array("GIF89a\t\0\t\0".utf8), "GIF"),
            (Array("II*\0....".utf8), "TIFF"), (Array("MM\0*....".utf8), "TIFF"),
            (Array("BM".utf8) + [9, 9, 9, 9, 0, 0, 0, 0, 54], "BMP"),
        ] as [([UInt8], String)])
    func otherImages(content: [UInt8], name: String) throws {
        try withTemporaryFolder { folder in
            let url = folder.appending(path: "photo.png")
            try Data(content).write(to: url)
            #expect(throws: ImageError.unsupported(file: url, found: name)) { try ImageFile.decode(url) }
            #expect("\(ImageError.unsupported(file: url, found: name))".contains("Convert it to JPEG, PNG or WebP"))
        }
    }

    #if !HEIC
        @Test("A build without HEIC support reports that HEIC is missing") func withoutHEIC() throws {
            try withTemporaryFolder { folder in
                let url = folder.appending(path: "photo.heic")
                try Data([0, 0, 0, 24] + Array("ftypheic".utf8) + [0, 0, 0, 0]).write(to: url)
                for read in [{ _ = try ImageFile.decode(url) }, { _ = try ImageFile.information(of: url) }] {
                    #expect { try read() } throws: { error in
                        guard case .missingDecoder(url, .heic, _)? = error as? ImageError else { return false }
                        return "\(error)".contains("this build has no HEIC")
                    }
                }
            }
        }
    #endif

    @Test("Folders, devices, broken links and missing files are errors and do not block") func unreadable() throws {
        try withTemporaryFolder { folder in
            try FileManager.default.createSymbolicLink(
                atPath: folder.appending(path: "device").path, withDestinationPath: "/dev/zero")
            try FileManager.default.createSymbolicLink(
                atPath: folder.appending(path: "nowhere").path, withDestinationPath: "absent")
            for name in ["", "missing.jpg", "device", "nowhere"] {
                let url = folder.appending(path: name)
                #expect { try ImageFile.decode(url) } throws: { error in
                    guard case .unreadable(url, _)? = error as? ImageError else { return false }
                    return "\(error)".hasPrefix(url.path(percentEncoded: false))
                }
            }
            let device = folder.appending(path: "device")
            let error = ImageError.unreadable(file: device, reason: "it is a device, expected a regular file")
            #expect(throws: error) { try ImageFile.decode(device) }
        }
    }

    @Test("A written image is read again under unusual names", arguments: ["a.png", "ü %20 b.PNG"])
    func writtenAndRead(name: String) throws {
        try withTemporaryFolder { folder in
            let image = RasterImage.noise(width: 5, height: 4, channels: 4)
            let url = folder.appending(path: name)
            try ImageFile.write(image, to: url)
            #expect(try ImageFile.decode(url, keepsAlpha: true) == image)
        }
    }

    @Test("A written image has the format of its file extension", arguments: ["a.jpg", "a.JPEG", "a.png"])
    func formatByName(name: String) throws {
        try withTemporaryFolder { folder in
            let url = folder.appending(path: name)
            try ImageFile.write(.gradient(width: 9, height: 9), to: url, quality: 80)
            #expect(FileKind([UInt8](try Data(contentsOf: url))) == .image(name == "a.png" ? .png : .jpeg))
        }
    }

    @Test("An invalid extension or folder is an error and leaves no file") func unwritable() throws {
        try withTemporaryFolder { folder in
            let image = RasterImage(width: 1, height: 1)
            #expect { try ImageFile.write(image, to: folder.appending(path: "a.webp")) } throws: {
                "\($0)".contains(".png")
            }
            #expect { try ImageFile.write(image, to: folder.appending(path: "missing/a.png")) } throws: { error in
                if case .unwritable? = error as? ImageError { true } else { false }
            }
            let remaining = try FileManager.default.contentsOfDirectory(atPath: folder.path)
            #expect(remaining.isEmpty)
        }
    }
}
