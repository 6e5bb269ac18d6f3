import Foundation
import ImprintImages
import ImprintSynthesis
import TestSupport
import Testing

@Suite struct DrawTests {
    @Test("draw --user draws the images of the user's recipe, and rejects a folder with images of another recipe")
    func users() throws {
        try withTemporaryFolder { folder in
            let recipe = packageFolder.appending(path: "datasets/two-circles.json")
            func draw(_ options: String) throws -> CommandOutput {
                try shell("$imprint draw '\(recipe.path)' --output photos --count 3 --json \(options)", folder: folder)
            }
            let run = try draw("--user 7 --contact-sheet sheet.png")
            #expect(run.status == 0, "\(run.errors)")
            let line = try #require(run.lines.first)
            #expect(line["count"] as? Int == 3 && line["labels"] as? [String] == ["TwoCircles", "Other"])

            let user = try DrawingRecipe(contentsOf: recipe).ofUser(7)
            let images = [(0, 0), (0, 1), (1, 0)].map { user.draw(label: $0, index: $1, seed: user.seed) }
            let sheet = try ImageFile.decode(folder.appending(path: "sheet.png"))
            #expect(sheet == ContactSheet.make(images, columns: 10))
            let files = try FileManager.default.subpathsOfDirectory(atPath: folder.appending(path: "photos").path)
            #expect(
                Set(files.filter { $0.hasSuffix(".jpg") })
                    == ["TwoCircles/00001.jpg", "TwoCircles/00002.jpg", "Other/00001.jpg"])

            let again = try draw("--user 7")
            #expect(again.status == 0, "\(again.errors)")
            for options in ["--user 8", "--user 7 --seed 1", ""] {
                let other = try draw(options)
                #expect(other.status == 64 && other.errors.contains("two-circles-user-7"), "\(other.errors)")
            }
        }
    }

    @Test(
        "A signal ends draw --artwork with a warning; boxes.json has the boxes of the images so far",
        arguments: ["INT", "TERM"])
    func interrupted(signal: String) throws {
        try withTemporaryFolder { folder in
            let artwork = packageFolder.appending(path: "Tests/ImprintImagesTests/Fixtures/artwork-leaf.png")
            let run = try shell(
                """
                $imprint draw --artwork Leaf='\(artwork.path)' --size 64 --count 1000000 --threads 1 --quiet --output drawn 2> errors &
                while [ ! -e drawn/000001.jpg ]; do sleep 0.05; done
                kill -\(signal) $!
                wait $!
                """, folder: folder)
            let errors = try String(contentsOf: folder.appending(path: "errors"), encoding: .utf8)
            #expect(run.status == 130 && errors.contains("Interrupted; drawn has "), "\(errors)")
            let boxes = try Data(contentsOf: folder.appending(path: "drawn/boxes.json"))
            let content = try #require(try JSONSerialization.jsonObject(with: boxes) as? [String: Any])
            let files = try FileManager.default.contentsOfDirectory(atPath: folder.appending(path: "drawn").path)
            #expect((content["images"] as? [Any])?.count == files.count - 1 && files.count > 1)
            #expect((content["annotations"] as? [Any])?.isEmpty == false)
        }
    }

    @Test("A signal ends draw with a recipe; the warning has the number of images", arguments: ["INT", "TERM"])
    func interruptedRecipe(signal: String) throws {
        try withTemporaryFolder { folder in
            let recipe = packageFolder.appending(path: "datasets/two-circles.json")
            let run = try shell(
                """
                $imprint draw '\(recipe.path)' --count 1000000 --threads 1 --quiet --output drawn 2> errors &
                while [ ! -e drawn/TwoCircles/00001.jpg ]; do sleep 0.05; done
                kill -\(signal) $!
                wait $!
                """, folder: folder)
            let errors = try String(contentsOf: folder.appending(path: "errors"), encoding: .utf8)
            let match = try #require(
                errors.firstMatch(of: /Interrupted; drawn has (\d+) of 1000000 images/), "\(errors)")
            let files = try FileManager.default.subpathsOfDirectory(atPath: folder.appending(path: "drawn").path)
            #expect(run.status == 130 && Int(match.1) == files.count(where: { $0.hasSuffix(".jpg") }))
        }
    }
}
