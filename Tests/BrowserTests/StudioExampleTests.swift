import Foundation
import ImprintImages
import TestSupport
import Testing

@testable import ImprintStudio

/// The requests for single examples, and the undo of deletions and moves.
@Suite("Examples of the studio") struct StudioExampleTests {
    private struct Content: Decodable, Equatable {
        struct Class: Decodable, Equatable {
            let label: String
            let count: Int
            let ids: [Int]
        }
        let classes: [Class]
        let undo: String?

        /// The numbers of the examples by label, in the order of the classes.
        var text: String { classes.map { "\($0.label) \($0.ids)" }.joined(separator: ", ") }
    }

    private func content(_ answer: StudioClient.Answer) throws -> Content {
        try #require(answer.status == 200, "\(answer.error ?? "")")
        return try JSONDecoder().decode(Content.self, from: answer.body)
    }

    private func photo(_ kind: StudioSamples.Kind, _ seed: UInt64, width: Int = 96) throws -> Data {
        Data(try ImageFile.encodeJPEG(StudioSamples.image(kind, seed: seed, width: width, height: 72)))
    }

    /// Adds two classes with three examples each: "A" with 1 to 3, and "B" with 4 to 6.
    private func addExamples(_ client: StudioClient) async throws {
        for (label, kind) in [("A", StudioSamples.Kind.bright), ("B", .dark)] {
            #expect(try await client.ask("POST", "classes", ["label": label]).status == 200)
            for seed in 0..<3 {
                let query = ["label": label, "source": "file"]
                #expect(try await client.ask("POST", "examples", query, try photo(kind, UInt64(seed))).status == 200)
            }
        }
    }

    @Test("The studio serves each example and its small thumbnail, only to its own page") func thumbnails() async throws
    {
        try await StudioSamples.withStudio(hasModel: false) { studio, folder in
            let client = try await StudioClient.enter(studio).client
            _ = try await client.ask("POST", "classes", ["label": "Wide"])
            let wide = try photo(.bright, 1, width: 960)
            let added = try content(try await client.ask("POST", "examples", ["label": "Wide"], wide))
            #expect(added.classes == [Content.Class(label: "Wide", count: 1, ids: [1])])
            let answer = try await client.ask("GET", "examples/1")
            #expect(answer.status == 200 && answer.headers["content-type"] == "image/jpeg")
            #expect(answer.headers["content-security-policy"] == "default-src 'none'; sandbox")
            #expect(answer.headers["x-content-type-options"] == "nosniff")
            #expect(answer.headers["cache-control"] == "no-store")
            let file = folder.appending(path: "thumbnail.jpg")
            try answer.body.write(to: file)
            let image = try ImageFile.decode(file)
            #expect(image.width == 96 && image.height == 96 && answer.body.count < 20_000)
            let full = try await client.ask("GET", "examples/1", ["size": "full"])
            #expect(full.body == wide && full.headers["content-security-policy"] == "default-src 'none'; sandbox")
            for path in ["examples/2", "examples/0", "examples/-1", "examples/01", "examples/x", "examples/1/2"] {
                #expect(try await client.ask("GET", path).status == 404, "\(path)")
            }
            #expect(try await client.ask("POST", "examples/1").status == 404)
            var stranger = client
            stranger.cookie = nil
            #expect(try await stranger.ask("GET", "examples/1").status == 403)
            #expect(try await stranger.ask("GET", "examples/1", ["size": "full"]).status == 403)
            #expect(try await stranger.ask("DELETE", "examples/1").status == 403)
            var elsewhere = client
            elsewhere.origin = "http://pictures.example"
            #expect(try await elsewhere.ask("DELETE", "examples/1").status == 403)
            #expect(try await elsewhere.ask("POST", "undo").status == 403)
        }
    }

    @Test("Deletions and moves are undone in reverse order") func undo() async throws {
        try await StudioSamples.withStudio(hasModel: false) { studio, _ in
            let client = try await StudioClient.enter(studio).client
            #expect(try await client.ask("POST", "undo").status == 404)
            try await addExamples(client)
            var seen = [try content(try await client.ask("GET", "examples"))]
            #expect(seen[0].text == "A [1, 2, 3], B [4, 5, 6]" && seen[0].undo == nil)
            seen.append(try content(try await client.ask("DELETE", "examples/2")))
            #expect(seen[1].text == "A [1, 3], B [4, 5, 6]" && seen[1].undo == "Deleted an example of “A”.")
            #expect(try await client.ask("GET", "examples/2").status == 404)
            seen.append(try content(try await client.ask("PUT", "examples/4", ["label": "A"])))
            #expect(seen[2].text == "A [1, 3, 4], B [5, 6]" && seen[2].undo == "Moved an example from “B” to “A”.")
            seen.append(try content(try await client.ask("DELETE", "classes", ["label": "A"])))
            #expect(seen[3].text == "B [5, 6]" && seen[3].undo == "Deleted the class “A” and its 3 examples.")
            for expected in seen.dropLast().reversed() {
                #expect(try content(try await client.ask("POST", "undo")) == expected)
            }
            let nothing = try await client.ask("POST", "undo")
            #expect(nothing.status == 404 && nothing.error?.hasPrefix("There is nothing to undo.") == true)
            #expect(try await client.ask("GET", "examples/2").status == 200)
        }
    }

    @Test("Undo finds a class that was renamed, or replaced by one of the same name")
    func undoOfChangedClasses() async throws {
        try await StudioSamples.withStudio(hasModel: false) { studio, _ in
            let client = try await StudioClient.enter(studio).client
            try await addExamples(client)
            _ = try await client.ask("DELETE", "examples/1")
            let renamed = try content(try await client.ask("PUT", "classes", ["label": "A", "name": "C"]))
            #expect(renamed.text == "C [2, 3], B [4, 5, 6]" && renamed.undo == "Deleted an example of “C”.")
            #expect(try content(try await client.ask("POST", "undo")).text == "C [1, 2, 3], B [4, 5, 6]")
            _ = try await client.ask("DELETE", "classes", ["label": "B"])
            _ = try await client.ask("POST", "classes", ["label": "B"])
            _ = try await client.ask("POST", "examples", ["label": "B"], try photo(.dark, 9))
            #expect(try content(try await client.ask("POST", "undo")).text == "C [1, 2, 3], B [4, 5, 6, 7]")
        }
    }

    @Test("Copies, unknown examples and invalid names are errors with a message") func errors() async throws {
        try await StudioSamples.withStudio(hasModel: false) { studio, _ in
            let client = try await StudioClient.enter(studio).client
            try await addExamples(client)
            // The same photo in two classes.
            _ = try await client.ask("POST", "examples", ["label": "B", "source": "file"], try photo(.bright, 0))
            let copy = try await client.ask("PUT", "examples/1", ["label": "B"])
            #expect(copy.status == 409 && copy.error?.contains("already an example of \"B\"") == true)
            #expect(try await client.ask("PUT", "examples/1", ["label": "Unknown"]).status == 404)
            #expect(try await client.ask("PUT", "examples/1").status == 400)
            #expect(try await client.ask("PUT", "examples/99", ["label": "B"]).status == 404)
            #expect(try await client.ask("DELETE", "examples/99").status == 404)
            #expect(try await client.ask("PUT", "classes", ["label": "A", "name": "B"]).status == 409)
            #expect(try await client.ask("PUT", "classes", ["label": "A", "name": "a/b"]).status == 400)
            #expect(try await client.ask("PUT", "classes", ["label": "A"]).status == 400)
            #expect(try await client.ask("PUT", "classes", ["label": "Unknown", "name": "C"]).status == 404)
            let end = try content(try await client.ask("GET", "examples"))
            #expect(end.text == "A [1, 2, 3], B [4, 5, 6, 7]" && end.undo == nil)
        }
    }

    @Test("Training forgets the removed examples") func training() async throws {
        try await StudioSamples.withStudio(hasModel: false) { studio, _ in
            let client = try await StudioClient.enter(studio).client
            try await addExamples(client)
            _ = try await client.ask("POST", "examples", ["label": "A"], try photo(.bright, 9))
            _ = try await client.ask("DELETE", "examples/7")
            #expect(try await client.ask("POST", "training").status == 200)
            #expect(try content(try await client.ask("GET", "examples")).undo == nil)
            #expect(try await client.ask("POST", "undo").status == 404)
            #expect(try await client.ask("DELETE", "training").status == 200)
        }
    }

    @Test("Training that is stopped does not change the model") func stoppedTraining() async throws {
        try await StudioSamples.withStudio(hasModel: false) { studio, _ in
            try await addExamples(try await StudioClient.enter(studio).client)
            // A request to stop could arrive after the end of the run.
            try studio.trainer.start()
            await studio.trainer.stop()
            let status = studio.trainer.status
            #expect(status.stage == .stopped && status.message == "Stopped; the model did not change.")
            #expect(studio.trainer.classifier == nil && studio.trainer.learned == nil)
        }
    }

    @Test("Removals expire after ten minutes, and have limits of number and memory") func limits() throws {
        func removal(_ id: Int, bytes: Int = 1) -> ExampleRemoval {
            .example(Example(id: id, photo: Data(count: bytes), thumbnail: Data()), label: "A", index: 0)
        }
        func id(_ undo: ExampleUndo) -> Int? {
            guard case .example(let example, _, _) = undo.last else { return nil }
            return example.id
        }
        let start = ContinuousClock.now
        var undo = ExampleUndo()
        undo.add(removal(1), at: start)
        undo.add(removal(2), at: start + .seconds(60))
        undo.removeExpired(at: start + .seconds(599))
        #expect(id(undo) == 2)
        undo.removeExpired(at: start + .seconds(600))
        undo.removeLast()
        #expect(id(undo) == nil)
        for index in 1...ExampleUndo.limit + 2 { undo.add(removal(index)) }
        for _ in 1..<ExampleUndo.limit { undo.removeLast() }
        #expect(id(undo) == 3)
        undo.removeAll()
        undo.add(removal(1, bytes: Examples.byteLimit / 2 + 1))
        undo.add(removal(2, bytes: Examples.byteLimit / 2))
        undo.removeLast()
        #expect(id(undo) == nil)
    }

    @Test("Undo does not exceed the limit of memory") func undoLimit() throws {
        var examples = Examples()
        try examples.add(class: "A", known: [])
        try examples.add(Data(count: Examples.byteLimit / 2), to: "A")
        try examples.remove(1)
        try examples.add(Data(count: Examples.byteLimit / 2 + 1), to: "A")
        #expect(throws: RequestError.self) { try examples.undoRemoval() }
        try examples.remove(2)
        // The deletion of the first example was forgotten, because both need too much memory.
        try examples.undoRemoval()
        #expect(examples.classes[0].examples.map(\.id) == [2] && examples.undo.last == nil)
    }
}
