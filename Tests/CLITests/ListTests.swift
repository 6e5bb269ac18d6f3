import Foundation
import TestSupport
import Testing

@Suite("Lists on the command line") struct ListTests {
    @Test("train, evaluate and audit read a list") func list() throws {
        try withTemporaryFolder { folder in
            try writeImages(to: folder, count: 8)
            let script = """
                set -e
                echo photo,label > list.csv
                for photo in */*.png; do echo "$photo,${photo%%/*}" >> list.csv; done
                "$imprint" train list.csv --output m.imprint --network lenet --width 0.25 --input-size 16 --epochs 1 --threads 1
                "$imprint" evaluate m.imprint list.csv --json
                "$imprint" audit list.csv
                """
            let result = try shell(script, folder: folder)
            #expect(result.status == 0, "\(result.errors)")
            #expect(result.output.contains("\"images\":8,\"labels\":[\"bright\",\"dark\"]"))
        }
    }

    @Test(
        "Boxes instead of a list are an error that names --annotations",
        arguments: ["train boxes.json -o m.imprint", "audit boxes.json"])
    func boxes(command: String) throws {
        try withTemporaryFolder { folder in
            try Data("{\"images\":[],\"annotations\":[],\"categories\":[]}".utf8)
                .write(to: folder.appending(path: "boxes.json"))
            let run = try shell("$imprint \(command)", folder: folder)
            #expect(run.status == 1 && run.errors.contains("bounding boxes in the COCO format"), "\(run.errors)")
            #expect(run.errors.contains("--annotations"), "\(run.errors)")
        }
    }

    @Test(
        "A list with several labels per photo trains a multi-label model, and classify applies its thresholds"
    )
    func multiLabel() throws {
        try withTemporaryFolder { folder in
            try writeImages(to: folder, count: 8)
            let script = """
                set -e
                echo photo,labels > list.csv
                for photo in bright/*.png; do echo "$photo,bright;noisy" >> list.csv; done
                for photo in dark/*.png; do echo "$photo," >> list.csv; done
                "$imprint" train list.csv --output m.imprint --network lenet --width 0.25 --input-size 16 --epochs 1 --threads 1
                "$imprint" evaluate m.imprint list.csv --json --images
                "$imprint" classify m.imprint bright/0.png --json --threshold 0
                "$imprint" inspect m.imprint
                """
            let result = try shell(script, folder: folder)
            #expect(result.status == 0, "\(result.errors)")
            #expect(
                result.output.contains("\"meanAveragePrecision\":")
                    && result.output.contains("\"thresholds\":[0.5,0.5]"))
            #expect(
                result.output.contains("\"labels\":[\"bright\",\"noisy\"]")
                    && result.output.contains("\"labels\":[]"))
        }
    }

    @Test("--rehearsal is an error for a list with several labels per photo, except 0") func multiLabelRehearsal()
        throws
    {
        try withTemporaryFolder { folder in
            try writeImages(to: folder, count: 8)
            let script = """
                echo photo,labels > list.csv
                for photo in bright/*.png; do echo "$photo,bright;noisy" >> list.csv; done
                for photo in dark/*.png; do echo "$photo," >> list.csv; done
                options="--network lenet --width 0.25 --input-size 16 --epochs 1 --threads 1"
                "$imprint" train list.csv --output m.imprint --rehearsal 8 $options; echo "status $?"
                "$imprint" train list.csv --output m.imprint --rehearsal 0 $options; echo "status $?"
                """
            let result = try shell(script, folder: folder)
            #expect(result.output == "status 64\nstatus 0\n", "\(result.errors)")
            #expect(result.errors.contains("does not support multi-label models"), "\(result.errors)")
        }
    }

    @Test("A list with one label trains a multi-label model, which personalize refuses") func oneLabel() throws {
        try withTemporaryFolder { folder in
            try writeImages(to: folder.appending(path: "photos"), count: 8)
            let script = """
                set -e
                echo photo,labels > list.csv
                for photo in photos/bright/*.png; do echo "$photo,bright" >> list.csv; done
                for photo in photos/dark/*.png; do echo "$photo," >> list.csv; done
                "$imprint" train list.csv --output m.imprint --network lenet --width 0.25 --input-size 16 --epochs 1 --threads 1
                "$imprint" evaluate m.imprint list.csv --images
                set +e
                "$imprint" personalize m.imprint photos --output p; echo "status $?"
                """
            let result = try shell(script, folder: folder)
            #expect(result.output.contains("worst mistakes: "), "\(result.errors)")
            #expect(result.output.hasSuffix("status 1\n"), "\(result.output)")
            #expect(
                result.errors.contains("multi-label model, which cannot be personalized")
                    && result.errors.contains("Train the multi-label model again with the new photos in its list"))
            #expect(!FileManager.default.fileExists(atPath: folder.appending(path: "p").path))
        }
    }

    @Test("evaluate --unknown reads a list of known photos, and refuses a multi-label model")
    func refusals() throws {
        try withTemporaryFolder { folder in
            try writeImages(to: folder, count: 60)
            let script = """
                set -e
                echo photo,label > list.csv
                for photo in */*.png; do echo "$photo,${photo%%/*}" >> list.csv; done
                options="--network logonet --width 0.125 --input-size 16 --epochs 1 --threads 1"
                "$imprint" train list.csv --output m.imprint $options
                mkdir others && cp dark/*.png others
                "$imprint" evaluate m.imprint list.csv --unknown others --json
                "$imprint" train list.csv --output multi.imprint --multi-label $options
                set +e
                "$imprint" evaluate multi.imprint list.csv --unknown others; echo "status $?"
                """
            let result = try shell(script, folder: folder)
            #expect(result.output.contains("\"unknown\":{\"accepted\":"), "\(result.errors)")
            #expect(result.output.hasSuffix("status 64\n"), "\(result.output)")
            #expect(result.errors.contains("--unknown: multi.imprint is a multi-label model"))
        }
    }

    @Test("--folds reads a list; --groups, --keep and --predictions have the paths of the list") func folds() throws {
        try withTemporaryFolder { folder in
            try writeImages(to: folder.appending(path: "photos"), count: 12)
            let options =
                "--folds 2 --network logonet --width 0.125 --batch-size 4 --input-size 16 --epochs 1 --random-split --threads 1"
            let run = try shell(
                """
                set -e
                echo photo,label > list.csv
                for photo in photos/*/*.png; do label=${photo#*/}; echo "$photo,${label%/*}" >> list.csv; done
                echo '[["photos/bright/0.png", "photos/dark/1.png"]]' > groups.json
                "$imprint" train list.csv --groups groups.json --keep kept --predictions p.csv --json \(options)
                "$imprint" train list.csv --groups groups.json --keep kept --report r.html --json \(options)
                """, folder: folder)
            #expect(run.status == 0, "\(run.errors)")
            #expect(run.lines.map { $0["kept"] as? Bool } == [false, false, nil, true, true, nil])
            #expect(run.lines[2]["groups"] as? Int == 11 && run.lines[2]["images"] as? Int == 12)
            #expect(run.lines[2]["accuracy"] as? NSDictionary == run.lines[5]["accuracy"] as? NSDictionary)
            let rows = try String(contentsOf: folder.appending(path: "p.csv"), encoding: .utf8).split(separator: "\n")
                .map { $0.split(separator: ",") }
            #expect(Set(rows.dropFirst().map { $0[2] }).count == 12)
            #expect(rows.dropFirst().allSatisfy { $0[2].hasPrefix("photos/\($0[3])/") })
            let grouped = rows.filter { ["photos/bright/0.png", "photos/dark/1.png"].contains(String($0[2])) }
            #expect(grouped.count == 2 && grouped[0][1] == grouped[1][1])
            let unknown = try shell(
                """
                echo '[["bright/0.png"]]' > groups.json
                "$imprint" train list.csv --groups groups.json \(options)
                """, folder: folder)
            #expect(
                unknown.status == 1 && unknown.errors.contains("\"bright/0.png\", which is not a photo in ")
                    && unknown.errors.contains("list.csv. Expected paths"),
                "\(unknown.errors)")
        }
    }

    @Test("train and audit report labels that differ only in case") func similarLabels() throws {
        try withTemporaryFolder { folder in
            try writeImages(to: folder, count: 4)
            let script = """
                set -e
                echo photo,label > list.csv
                for photo in bright/*.png; do echo "$photo,cat" >> list.csv; done
                for photo in dark/*.png; do echo "$photo,Cat" >> list.csv; done
                "$imprint" audit list.csv --json
                "$imprint" train list.csv --output m.imprint --network lenet --width 0.25 --input-size 16 --epochs 1
                """
            let result = try shell(script, folder: folder)
            #expect(
                result.status == 0
                    && result.errors.contains(
                        "The labels \"Cat\" and \"cat\" differ only in case, spaces, hyphens, underscores or Unicode form. The model learns them as different labels."
                    ), "\(result.errors)")
            let finding = try #require(result.lines.first { $0["kind"] as? String == "similarLabels" })
            #expect(finding["reason"] as? String == "\"Cat\", \"cat\"" && finding["files"] as? [String] == [])
        }
    }

    @Test(
        "prepare and augment warn about similar names of sub-folders",
        arguments: ["prepare photos --output copy", "augment photos --contact-sheet sheet.png"])
    func similarFolders(command: String) throws {
        try withTemporaryFolder { folder in
            try writeImages(to: folder.appending(path: "photos"), count: 2)
            try FileManager.default.moveItem(
                at: folder.appending(path: "photos/bright"), to: folder.appending(path: "photos/dark "))
            let result = try shell("$imprint \(command)", folder: folder)
            #expect(
                result.status == 0 && result.errors.contains("The labels \"dark\" and \"dark \" differ only in case"),
                "\(result.errors)")
        }
    }

    @Test("The labels of a list that a model does not have are an error") func otherLabels() throws {
        try withTemporaryFolder { folder in
            try writeImages(to: folder, count: 8)
            let script = """
                options="--network lenet --width 0.25 --input-size 16 --epochs 1 --threads 1"
                "$imprint" train . --output m.imprint $options
                echo photo,label > list.csv
                for photo in bright/*.png; do echo "$photo,night" >> list.csv; done
                for photo in dark/*.png; do echo "$photo,Dark" >> list.csv; done
                "$imprint" evaluate m.imprint list.csv
                """
            let result = try shell(script, folder: folder)
            #expect(
                result.status == 1
                    && result.errors.contains(
                        "list.csv has labels that the model does not have: \"Dark\" (similar to \"dark\"), night."),
                "\(result.errors)")
        }
    }

    @Test("A missing photo of a list is an error with its line") func missing() throws {
        try withTemporaryFolder { folder in
            try Data("photo,label\nnone.png,cat\n".utf8).write(to: folder.appending(path: "list.csv"))
            let result = try imprint("train", "list.csv", "--output", "m.imprint", folder: folder)
            #expect(result.status == 1 && result.errors.contains("line 2: there is no photo none.png"))
        }
    }
}
