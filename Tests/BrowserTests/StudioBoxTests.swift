import Foundation
import Imprint
import ImprintImages
import ImprintStudio
import ImprintTraining
import TestSupport
import Testing

/// The photos with boxes that the studio keeps, as programs request them.
@Suite("Boxes of the studio") struct StudioBoxTests {
    private struct Content: Decodable {
        struct Photo: Decodable {
            struct Object: Decodable, Equatable {
                let label: String
                let box: NormalizedRectangle
            }
            let name: String
            let width: Int
            let height: Int
            let objects: [Object]
            let isBackground: Bool
            let revision: Int
        }
        let photos: [Photo]
        let version: Int
        let problems: [String]
        let shortage: String?
        let added: String?
    }

    private struct Edited: Decodable {
        let photo: Content.Photo
        let version: Int
        let shortage: String?
        let photos: [Content.Photo]?
    }

    private static func decoded(_ answer: StudioClient.Answer) throws -> Content {
        #expect(answer.status == 200, "\(answer.error ?? "")")
        return try JSONDecoder().decode(Content.self, from: answer.body)
    }

    private static func edited(_ answer: StudioClient.Answer) throws -> Edited {
        #expect(answer.status == 200, "\(answer.error ?? "")")
        return try JSONDecoder().decode(Edited.self, from: answer.body)
    }

    private static func edit(_ objects: [(String, [Double])], revision: Int = 0, isBackground: Bool = false) -> Data {
        let texts = objects.map { label, box in
            "{\"label\": \"\(label)\", \"box\": {\"x\": \(box[0]), \"y\": \(box[1]), \"width\": \(box[2]), \"height\": \(box[3])}}"
        }
        let text =
            "{\"revision\": \(revision), \"isBackground\": \(isBackground), \"objects\": [\(texts.joined(separator: ", "))]}"
        return Data(text.utf8)
    }

    private func photo(_ seed: UInt64 = 1, width: Int = 200, height: Int = 100) throws -> Data {
        Data(try ImageFile.encodeJPEG(StudioSamples.image(.dark, seed: seed, width: width, height: height)))
    }

    private static func boxes(_ folder: URL) -> URL { folder.appending(path: "home/studio") }

    @Test("Boxes are stored as COCO beside their photos, and a later studio has them") func stored() async throws {
        try await withTemporaryFolder { folder in
            let boxes = folder.appending(path: "new/boxes")
            let installer = StudioSamples.installer(folder)
            func withStudio<Value>(_ body: (StudioClient, Studio) async throws -> Value) async throws -> Value {
                let studio = try await Studio(nil, installer: installer, boxes: boxes)
                let value = try await body(try await StudioClient.enter(studio).client, studio)
                await studio.stop()
                return value
            }
            try await withStudio { client, _ in
                let empty = try Self.decoded(try await client.ask("GET", "boxes"))
                #expect(empty.photos.isEmpty && !FileManager.default.fileExists(atPath: boxes.path))
                for seed in 1...3 as ClosedRange<UInt64> {
                    let added = try Self.decoded(try await client.ask("POST", "boxes", [:], try photo(seed)))
                    #expect(added.photos.count == Int(seed) && added.added == added.photos.last?.name)
                }
                let first = ("leaf / Ω", [0.1, 0.2, 0.3, 0.4])
                let edited = try Self.edited(
                    try await client.ask(
                        "PUT", "boxes", ["name": "00001.jpeg"], Self.edit([first, ("crest", [0, 0, 1, 1])])))
                // The response has only the edited photo.
                #expect(edited.photo.objects.count == 2 && edited.photo.revision == 1 && edited.photos == nil)
                #expect(edited.version == 5 && edited.shortage?.contains("now 1") == true)
                // A photo without boxes is not used before the user says that it shows no object.
                var annotations = try BoxAnnotations(contentsOf: boxes.appending(path: "boxes.json"))
                #expect(annotations.photos.count == 1 && annotations.warnings == [] && annotations.skipped == [])
                let background = Self.edit([], isBackground: true)
                _ = try Self.edited(try await client.ask("PUT", "boxes", ["name": "00002.jpeg"], background))
                annotations = try BoxAnnotations(contentsOf: boxes.appending(path: "boxes.json"))
                #expect(
                    annotations.photos.map(\.objects.count) == [2, 0] && annotations.labels == ["crest", "leaf / Ω"])
                let box = try #require(annotations.photos[0].objects.first { $0.label == "leaf / Ω" }).box
                #expect(abs(box.x - 0.1) < 1e-4 && abs(box.y - 0.2) < 1e-4 && abs(box.height - 0.4) < 1e-4)
                // The folder is private.
                let attributes = try FileManager.default.attributesOfItem(atPath: boxes.path)
                #expect(attributes[.posixPermissions] as? Int == 0o700)
            }
            try await withStudio { client, _ in
                let content = try Self.decoded(try await client.ask("GET", "boxes"))
                #expect(
                    content.photos.map(\.objects.count) == [2, 0, 0]
                        && content.photos.map(\.isBackground) == [false, true, false])
                #expect(content.photos.allSatisfy { $0.width == 200 && $0.height == 100 } && content.problems == [])
                let image = try await client.ask("GET", "box-photo", ["name": "00003.jpeg"])
                #expect(image.body == (try photo(3)) && image.headers["content-type"] == "image/jpeg")
                #expect(image.headers["content-security-policy"]?.contains("sandbox") == true)
                let small = try await client.ask("GET", "box-photo", ["name": "00003.jpeg", "size": "small"])
                #expect(small.status == 200 && small.headers["content-type"] == "image/jpeg")
                // Another studio cannot use the folder at the same time.
                let other = try await Studio(nil, installer: installer, boxes: boxes)
                let refused = try await StudioClient.enter(other).client.ask("GET", "boxes")
                #expect(refused.status == 409 && refused.error?.contains("Another studio") == true)
                await other.stop()
                for name in ["00001.jpeg", "00002.jpeg"] {
                    _ = try Self.decoded(try await client.ask("DELETE", "boxes", ["name": name]))
                }
                #expect(!FileManager.default.fileExists(atPath: boxes.appending(path: "boxes.json").path))
                #expect(
                    try FileManager.default.contentsOfDirectory(atPath: boxes.appending(path: "images").path) == [
                        "00003.jpeg"
                    ])
            }
        }
    }

    @Test("Invalid photos, boxes and names are rejected and change nothing") func invalid() async throws {
        try await StudioSamples.withStudio(hasModel: false) { studio, folder in
            let client = try await StudioClient.enter(studio).client
            #expect(try await client.ask("POST", "boxes", [:], Data("no photo".utf8)).status == 422)
            #expect(try await client.ask("POST", "boxes").status == 400)
            let name = try #require(Self.decoded(try await client.ask("POST", "boxes", [:], try photo())).added)
            let valid = ("leaf", [0.1, 0.1, 0.2, 0.2])
            let invalid: [(Data, Int)] = [
                (Data("{".utf8), 400), (Data("[]".utf8), 400), (Data(), 400),
                (Self.edit([("leaf", [0.5, 0.5, 0.6, 0.2])]), 400), (Self.edit([("leaf", [-0.1, 0, 0.5, 0.5])]), 400),
                (Self.edit([("leaf", [0.1, 0.1, 0, 0.2])]), 400), (Self.edit([("leaf", [0, 0, 1e39, 1])]), 400),
                (Self.edit([("", valid.1)]), 400), (Self.edit([(" leaf", valid.1)]), 400),
                (Self.edit([("none", valid.1)]), 400), (Self.edit([("leaf\u{202E}", valid.1)]), 400),
                (Self.edit([("leaf\\n2", valid.1)]), 400),
                (Self.edit([(String(repeating: "a", count: 101), valid.1)]), 400),
                (Self.edit(Array(repeating: valid, count: 501)), 400), (Self.edit([valid], revision: 1), 409),
            ]
            for (body, status) in invalid {
                let answer = try await client.ask("PUT", "boxes", ["name": name], body)
                #expect(
                    answer.status == status && answer.error != nil,
                    "\(String(decoding: body.prefix(120), as: UTF8.self))")
            }
            for wrong in ["../boxes.json", "", "/etc/passwd", "00009.jpeg", "00001.jpeg/../00001.jpeg"] {
                #expect(try await client.ask("PUT", "boxes", ["name": wrong], Self.edit([valid])).status == 404)
                #expect(try await client.ask("GET", "box-photo", ["name": wrong]).status == 404)
                #expect(try await client.ask("DELETE", "boxes", ["name": wrong]).status == 404)
            }
            for (method, path) in [("PUT", "boxes"), ("DELETE", "boxes"), ("GET", "box-photo"), ("DELETE", "artwork")] {
                let body = method == "GET" ? nil : Self.edit([valid])
                #expect(try await client.ask(method, path, [:], body).status == 400)
            }
            let content = try Self.decoded(try await client.ask("GET", "boxes"))
            #expect(content.photos.map(\.objects) == [[]] && content.photos[0].revision == 0)
            #expect(content.shortage == "Draw boxes in at least 5 photos (now 0), or add artwork.")
            #expect(!FileManager.default.fileExists(atPath: Self.boxes(folder).appending(path: "boxes.json").path))
            // Another site or program cannot change or read anything.
            for (cookie, origin) in [(nil, client.origin), (client.cookie, "http://pictures.example")] {
                var stranger = client
                (stranger.cookie, stranger.origin) = (cookie, origin)
                for (method, path) in [
                    ("POST", "boxes"), ("PUT", "boxes"), ("DELETE", "boxes"), ("POST", "artwork"), ("POST", "detector"),
                ] {
                    #expect(
                        try await stranger.ask(method, path, ["name": name, "label": "a"], try photo()).status == 403)
                }
            }
            var reader = client
            reader.cookie = nil
            for path in ["boxes", "box-photo", "artwork", "sheet"] {
                #expect(try await reader.ask("GET", path).status == 403)
            }
        }
    }

    @Test(
        "Boxes of photos that are missing stay in a copy of the annotation file, and a damaged file is not overwritten")
    func missing() async throws {
        try await StudioSamples.withStudio(hasModel: false) { _, folder in
            let boxes = Self.boxes(folder)
            try FileManager.default.createDirectory(
                at: boxes.appending(path: "images"), withIntermediateDirectories: true)
            for name in ["a.jpg", "c.jpg"] { try photo().write(to: boxes.appending(path: "images/\(name)")) }
            let text = """
                {"images": [{"id": 1, "file_name": "images/a.jpg", "width": 200, "height": 100},
                {"id": 2, "file_name": "images/b.jpg", "width": 200, "height": 100},
                {"id": 3, "file_name": "\(folder.path)/outside.jpg", "width": 200, "height": 100}],
                "annotations": [{"id": 1, "image_id": 1, "category_id": 1, "bbox": [20, 10, 40, 20], "iscrowd": 1},
                {"id": 2, "image_id": 2, "category_id": 1, "bbox": [20, 10, 40, 20]},
                {"id": 3, "image_id": 3, "category_id": 1, "bbox": [20, 10, 40, 20]}],
                "categories": [{"id": 1, "name": "leaf"}]}
                """
            try photo().write(to: folder.appending(path: "outside.jpg"))
            let file = boxes.appending(path: "boxes.json")
            try Data(text.utf8).write(to: file)
            let studio = try await Studio(nil, installer: StudioSamples.installer(folder))
            let client = try await StudioClient.enter(studio).client
            let content = try Self.decoded(try await client.ask("GET", "boxes"))
            #expect(content.photos.map(\.name) == ["a.jpg", "c.jpg"] && content.photos.map(\.objects.count) == [1, 0])
            #expect(content.problems.count == 2 && content.problems.contains { $0.contains("b.jpg") })
            let edit = Self.edit([("leaf", [0, 0, 0.5, 0.5])])
            _ = try Self.edited(try await client.ask("PUT", "boxes", ["name": "c.jpg"], edit))
            #expect(try Data(contentsOf: boxes.appending(path: "boxes-1.json")) == Data(text.utf8))
            #expect(try BoxAnnotations(contentsOf: file).photos.map(\.objects.count) == [1, 1])
            await studio.stop()
            try Data("{\"images\": 1}".utf8).write(to: file)
            let damaged = try await Studio(nil, installer: StudioSamples.installer(folder))
            let other = try await StudioClient.enter(damaged).client
            for answer in [
                try await other.ask("GET", "boxes"), try await other.ask("POST", "boxes", [:], try photo()),
                try await other.ask("PUT", "boxes", ["name": "c.jpg"], edit),
            ] {
                #expect(answer.status == 422 && answer.error?.contains("boxes.json") == true)
            }
            #expect(try Data(contentsOf: file) == Data("{\"images\": 1}".utf8))
            await damaged.stop()
        }
    }

    /// Returns an annotation file with a box of the photo `images/a.jpg`, and more content.
    private static func annotationFile(annotation: String? = nil, category: String? = nil) -> Data {
        let annotations =
            [#"{"id": 1, "image_id": 1, "category_id": 1, "bbox": [20, 10, 40, 20]}"#] + [annotation].compactMap(\.self)
        let categories = [#"{"id": 1, "name": "leaf"}"#] + [category].compactMap(\.self)
        let text = """
            {"images": [{"id": 1, "file_name": "images/a.jpg", "width": 200, "height": 100}],
            "annotations": [\(annotations.joined(separator: ", "))], "categories": [\(categories.joined(separator: ", "))]}
            """
        return Data(text.utf8)
    }

    /// Writes the annotation file and the photo `images/a.jpg` to the folder of a studio.
    private func write(_ content: Data, to boxes: URL) throws {
        let images = boxes.appending(path: "images")
        try FileManager.default.createDirectory(at: images, withIntermediateDirectories: true)
        try photo().write(to: images.appending(path: "a.jpg"))
        try content.write(to: boxes.appending(path: "boxes.json"))
    }

    @Test(
        "The first edit copies an annotation file of another program, so that nothing in it is lost",
        arguments: [
            // An unknown image, a polygon, a box that extends beyond the photo, and a box without area.
            annotationFile(annotation: #"{"id": 2, "image_id": 9, "category_id": 1, "bbox": [20, 10, 40, 20]}"#),
            annotationFile(
                annotation:
                    #"{"id": 2, "image_id": 1, "category_id": 1, "bbox": [9, 9, 40, 20], "segmentation": [[9, 9, 49, 9, 9, 29]]}"#
            ),
            annotationFile(annotation: #"{"id": 2, "image_id": 1, "category_id": 1, "bbox": [180, 10, 40, 20]}"#),
            annotationFile(annotation: #"{"id": 2, "image_id": 1, "category_id": 1, "bbox": [20, 10, 0, 20]}"#),
            annotationFile(category: #"{"id": 2, "name": "crest"}"#), annotationFile(),
        ])
    func foreignFile(content: Data) async throws {
        try await StudioSamples.withStudio(hasModel: false) { studio, folder in
            let boxes = Self.boxes(folder)
            try write(content, to: boxes)
            let client = try await StudioClient.enter(studio).client
            for revision in 0..<2 {
                let edit = Self.edit([("leaf", [0, 0, 0.5, 0.5])], revision: revision)
                _ = try Self.edited(try await client.ask("PUT", "boxes", ["name": "a.jpg"], edit))
            }
            #expect(try Data(contentsOf: boxes.appending(path: "boxes-1.json")) == content)
            let names = try FileManager.default.contentsOfDirectory(atPath: boxes.path)
            #expect(names.sorted() == ["boxes-1.json", "boxes.json", "images"])
            #expect(try BoxAnnotations(contentsOf: boxes.appending(path: "boxes.json")).photos.count == 1)
        }
    }

    @Test("A later studio does not copy an annotation file that a studio has written") func ownFile() async throws {
        try await withTemporaryFolder { folder in
            let boxes = Self.boxes(folder)
            for run in 0..<2 {
                let studio = try await Studio(nil, installer: StudioSamples.installer(folder))
                let client = try await StudioClient.enter(studio).client
                if run == 0 {
                    for seed in 1...2 as ClosedRange<UInt64> {
                        _ = try Self.decoded(try await client.ask("POST", "boxes", [:], try photo(seed)))
                    }
                    let background = Self.edit([], isBackground: true)
                    _ = try Self.edited(try await client.ask("PUT", "boxes", ["name": "00002.jpeg"], background))
                }
                let parts = [("leaf", [1.0 / 3, 0.1234567, 0.2, 0.456789]), ("crest", [0.25, 0.5, 0.75, 0.5])]
                let edit = Self.edit(parts + (run == 0 ? [] : [("leaf", [0, 0, 0.1, 0.1])]))
                _ = try Self.edited(try await client.ask("PUT", "boxes", ["name": "00001.jpeg"], edit))
                await studio.stop()
            }
            let names = try FileManager.default.contentsOfDirectory(atPath: boxes.path)
            #expect(names.sorted() == ["boxes.json", "images"])
        }
    }

    @Test("If another program has changed the annotation file, the studio reads it again and rejects the change")
    func changedFile() async throws {
        try await StudioSamples.withStudio(hasModel: false) { studio, folder in
            let file = Self.boxes(folder).appending(path: "boxes.json")
            let client = try await StudioClient.enter(studio).client
            let name = try #require(Self.decoded(try await client.ask("POST", "boxes", [:], try photo())).added)
            func put(_ label: String, revision: Int) async throws -> StudioClient.Answer {
                try await client.ask(
                    "PUT", "boxes", ["name": name], Self.edit([(label, [0, 0, 0.5, 0.5])], revision: revision))
            }
            func labels() async throws -> [String] {
                try Self.decoded(try await client.ask("GET", "boxes")).photos.flatMap { $0.objects.map(\.label) }
            }
            _ = try Self.edited(try await put("leaf", revision: 0))
            let changed = Data(try String(contentsOf: file, encoding: .utf8).replacing("leaf", with: "branch").utf8)
            try changed.write(to: file)
            let rejected = try await put("crest", revision: 1)
            #expect(
                rejected.status == 409 && rejected.error?.hasPrefix("Another program has changed boxes.json") == true)
            #expect(rejected.error?.contains("reload the page") == true)
            #expect(try Data(contentsOf: file) == changed)
            #expect(try await labels() == ["branch"])
            // A page that has not read the boxes again cannot overwrite them.
            #expect(try await put("crest", revision: 1).status == 409)
            _ = try Self.edited(try await put("crest", revision: 2))
            #expect(try BoxAnnotations(contentsOf: file).labels == ["crest"])

            try changed.write(to: file)
            #expect(try await client.ask("DELETE", "boxes", ["name": name]).status == 409)
            #expect(try await labels() == ["branch"])
            // If the file is removed, the next edit writes all boxes again.
            try FileManager.default.removeItem(at: file)
            #expect(try await labels() == ["branch"])
            _ = try Self.edited(try await put("crest", revision: 4))
            #expect(try BoxAnnotations(contentsOf: file).labels == ["crest"])
            _ = try Self.decoded(try await client.ask("DELETE", "boxes", ["name": name]))
            #expect(!FileManager.default.fileExists(atPath: file.path))
        }
    }

    @Test(
        "An annotation file without usable photos or boxes is a problem, not an error, and stays in a copy",
        arguments: [
            #"[{"id": 1, "file_name": "images/b.jpg", "width": 200, "height": 100}], "annotations": []"#,
            #"[{"id": 1, "file_name": "images/a.jpg"}], "annotations": [{"image_id": 1, "category_id": 1, "bbox": [9, 9, 0, 9]}]"#,
            #"[], "annotations": []"#,
        ])
    func unusableFile(images: String) async throws {
        try await StudioSamples.withStudio(hasModel: false) { studio, folder in
            let boxes = Self.boxes(folder)
            let content = Data("{\"images\": \(images), \"categories\": [{\"id\": 1, \"name\": \"leaf\"}]}".utf8)
            try write(content, to: boxes)
            let client = try await StudioClient.enter(studio).client
            let shown = try Self.decoded(try await client.ask("GET", "boxes"))
            #expect(shown.photos.map(\.name) == ["a.jpg"] && !shown.photos[0].isBackground)
            #expect(shown.problems.count == 1 && shown.problems[0].contains("boxes.json"))
            _ = try Self.decoded(try await client.ask("POST", "boxes", [:], try photo(2)))
            // The new photo must not get boxes that the file may have for a missing photo of its name.
            #expect(try Data(contentsOf: boxes.appending(path: "boxes-1.json")) == content)
            let edit = Self.edit([("leaf", [0, 0, 0.5, 0.5])])
            _ = try Self.edited(try await client.ask("PUT", "boxes", ["name": "a.jpg"], edit))
            let names = try FileManager.default.contentsOfDirectory(atPath: boxes.path)
            #expect(names.sorted() == ["boxes-1.json", "boxes.json", "images"])
            let annotations = try BoxAnnotations(contentsOf: boxes.appending(path: "boxes.json"))
            #expect(annotations.photos.map(\.objects.count) == [1])
        }
    }
}
