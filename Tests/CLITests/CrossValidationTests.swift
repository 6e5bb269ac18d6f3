import Foundation
import TestSupport
import Testing

/// `imprint train --folds`.
@Suite struct CrossValidationTests {
    private static let options = "--epochs 1 --input-size 16 --width 0.125 --batch-size 4 --random-split --threads 1"

    private func withPhotos(_ body: (URL) throws -> Void) throws {
        try withTemporaryFolder { folder in
            try writeImages(to: folder.appending(path: "photos"), count: 12)
            try body(folder)
        }
    }

    @Test("A row for each fold, the pooled metrics, the predictions and a report; no model without --output")
    func text() throws {
        try withPhotos { folder in
            let run = try shell(
                "$imprint train photos --folds 3 \(Self.options) --predictions p.csv --report r.html", folder: folder)
            #expect(run.status == 0, "\(run.errors)")
            let rows = run.output.split(separator: "\n")
            #expect(rows.first?.contains("95 % interval") == true)
            #expect(rows.prefix(5).allSatisfy { $0.count == 80 })
            #expect(rows.dropFirst().prefix(4).map { $0.split(separator: " ")[0] } == ["1", "2", "3", "all"])
            #expect(run.output.contains("pooled over 3 folds; bootstrap over 12 groups"))
            #expect(run.errors.contains("\nNetwork: logonet, trained from scratch.\n"), "\(run.errors)")
            #expect(run.output.contains("standard deviation of the accuracy"))
            let table = try String(contentsOf: folder.appending(path: "p.csv"), encoding: .utf8)
            let lines = table.split(separator: "\n")
            #expect(lines[0] == "seed,fold,file,label,predicted,correct,bright,dark")
            #expect(lines.count == 13 && lines[1].hasPrefix("0,1,bright/"))
            let page = try String(contentsOf: folder.appending(path: "r.html"), encoding: .utf8)
            #expect(page.contains("Cross-validation") && page.contains("imprint train photos --folds 3"))
            #expect(
                try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted() == [
                    "p.csv", "photos", "r.html",
                ])
            let again = try shell(
                "echo mine > p.csv; $imprint train photos --folds 2 --predictions p.csv", folder: folder)
            #expect(
                again.status == 64 && again.errors.contains("is not a table of fold predictions"), "\(again.errors)")
        }
    }

    @Test("JSON has an object for each fold and one for all; --output also trains a model on all photos") func json()
        throws
    {
        try withPhotos { folder in
            let run = try shell(
                "$imprint train photos --folds 2 --seeds 1,2 \(Self.options) --json --output m.imprint", folder: folder)
            #expect(run.status == 0, "\(run.errors)")
            #expect(
                run.lines.map { $0["event"] as? String } == [
                    "fold", "fold", "fold", "fold", "crossValidation", "epoch", "finished",
                ])
            #expect(run.lines.prefix(4).map { $0["seed"] as? Int } == [1, 1, 2, 2])
            let fold = run.lines[0]
            #expect(
                fold["images"] as? Int == 6 && fold["trainingImages"] as? Int == 6 && fold["kept"] as? Bool == false)
            let all = run.lines[4]
            #expect(all["images"] as? Int == 24 && all["complete"] as? Bool == true && all["groups"] as? Int == 12)
            let accuracy = try #require(all["accuracy"] as? [String: Any])
            #expect(accuracy["value"] is Double && (accuracy["interval"] as? [Double])?.count == 2)
            #expect(all["folds"] as? Int == 2 && all["finishedFolds"] as? Int == 4)
            #expect(all["seedDeviation"] is Double)
            #expect(try imprint("inspect", "m.imprint", folder: folder).status == 0)
        }
    }

    @Test("Quotation marks are doubled in the table of predictions, even with an accent") func quotedLabels() throws {
        try withPhotos { folder in
            let label = "5\"\u{301}, x"
            let photos = folder.appending(path: "photos")
            try FileManager.default.moveItem(
                at: photos.appending(path: "bright"), to: photos.appending(path: label))
            let run = try shell("$imprint train photos --folds 2 \(Self.options) --predictions p.csv", folder: folder)
            #expect(run.status == 0, "\(run.errors)")
            let table = try Data(contentsOf: folder.appending(path: "p.csv"))
            #expect(table.starts(with: Data("seed,fold,file,label,predicted,correct,\"5\"\"\u{301}, x\",dark\n".utf8)))
            #expect(table.range(of: Data(",\"5\"\"\u{301}, x/0.png\",\"5\"\"\u{301}, x\",".utf8)) != nil)
            #expect(table.range(of: Data("\r".utf8)) == nil)
        }
    }

    @Test("An interrupted run ends with code 130 and its finished folds; repeating it trains only the others")
    func interruption() throws {
        try withPhotos { folder in
            let command = "$imprint train photos --folds 3 --keep kept \(Self.options) --json"
            // The run has far more folds than it can finish before the signal.
            let run = try shell(
                """
                \(command) > complete
                rm -r kept
                touch lines
                $imprint train photos --folds 2 \(Self.options) --predictions complete.csv > two
                cp complete.csv copy.csv
                $imprint train photos --folds 3 --seeds $(seq -s, 0 999) --keep kept \(Self.options) --json \
                    --predictions complete.csv --report new.html > lines &
                while [ $(wc -l < lines) -lt 1 ]; do sleep 0.02; done
                kill -INT $!
                wait $!
                """, folder: folder)
            #expect(run.status == 130, "\(run.errors)")
            #expect(run.errors.contains("Interrupted after"), "\(run.errors)")
            #expect(run.errors.contains("Did not replace complete.csv"), "\(run.errors)")
            #expect(
                FileManager.default.contentsEqual(
                    atPath: folder.appending(path: "complete.csv").path,
                    andPath: folder.appending(path: "copy.csv").path))
            let page = try String(contentsOf: folder.appending(path: "new.html"), encoding: .utf8)
            #expect(page.contains("Cross-validation, incomplete"))
            let again = try shell(command, folder: folder)
            #expect(again.status == 0, "\(again.errors)")
            #expect(again.lines.first?["kept"] as? Bool == true)
            let complete = try String(contentsOf: folder.appending(path: "complete"), encoding: .utf8)
            let before = CommandOutput(status: 0, output: complete, errors: "").lines
            #expect(
                again.lines.last?["accuracy"] as? NSDictionary == before.last?["accuracy"] as? NSDictionary
                    && again.lines.last?["logLoss"] as? NSDictionary == before.last?["logLoss"] as? NSDictionary)
            let other = try shell("\(command) --label-smoothing 0.2", folder: folder)
            #expect(
                other.status == 64 && other.errors.contains("another setting of label smoothing"), "\(other.errors)")
        }
    }

    @Test("If the folder of --keep disappears, the cross-validation continues, and ends with exit code 1")
    func unwritableFolds() throws {
        try withPhotos { folder in
            let run = try shell(
                """
                touch lines
                $imprint train photos --folds 3 --seeds $(seq -s, 0 19) --keep kept \(Self.options) --json > lines &
                while [ $(wc -l < lines) -lt 1 ] && kill -0 $!; do sleep 0.02; done
                mv kept moved
                wait $!
                """, folder: folder)
            #expect(run.status == 1, "\(run.errors)")
            #expect(run.errors.contains("The cross-validation continues, but seed "), "\(run.errors)")
            let lines = try String(contentsOf: folder.appending(path: "lines"), encoding: .utf8)
            let last = try #require(CommandOutput(status: 0, output: lines, errors: "").lines.last)
            #expect(last["complete"] as? Bool == true && last["finishedFolds"] as? Int == 60)
        }
    }

    @Test(
        "If its results cannot be written, a cross-validation continues and writes all files; the exit code is 1",
        arguments: ["> /dev/full", "--json > /dev/full", "--json >&-"])
    func unwritableResults(redirection: String) throws {
        try withPhotos { folder in
            let run = try shell(
                "$imprint train photos --folds 2 --predictions p.csv --report r.html --output m.imprint \(Self.options) "
                    + redirection, folder: folder)
            #expect(run.status == 1 && run.errors.contains("standard output: cannot be written"), "\(run.errors)")
            let table = try String(contentsOf: folder.appending(path: "p.csv"), encoding: .utf8)
            #expect(table.split(separator: "\n").count == 13)
            let page = try String(contentsOf: folder.appending(path: "r.html"), encoding: .utf8)
            #expect(page.contains("Cross-validation") && !page.contains("Cross-validation, incomplete"))
            let inspection = try imprint("inspect", "m.imprint", folder: folder)
            #expect(inspection.status == 0, "\(inspection.errors)")
        }
    }

    @Test("If a fold fails, the results of the finished folds are reported before the error") func failedFold() throws {
        try withPhotos { folder in
            let command = "$imprint train photos --folds 3 --keep kept \(Self.options)"
            let run = try shell(
                """
                \(command) > complete
                echo '{}' > kept/seed-0-fold-2.json
                \(command) --json --predictions p.csv --report r.html
                """, folder: folder)
            #expect(run.status == 1)
            #expect(run.lines.map { $0["event"] as? String } == ["fold", "crossValidation"], "\(run.output)")
            #expect(run.lines.last?["complete"] as? Bool == false && run.lines.last?["finishedFolds"] as? Int == 1)
            #expect(run.errors.contains("Failed after 1 fold."), "\(run.errors)")
            #expect(run.errors.contains("seed-0-fold-2.json is not a usable fold"), "\(run.errors)")
            let table = try String(contentsOf: folder.appending(path: "p.csv"), encoding: .utf8)
            let folds = table.split(separator: "\n").dropFirst().map { $0.split(separator: ",")[1] }
            #expect(!folds.isEmpty && folds.allSatisfy { $0 == "1" })
            let page = try String(contentsOf: folder.appending(path: "r.html"), encoding: .utf8)
            #expect(page.contains("Cross-validation, incomplete"))
        }
    }

    @Test(
        "Wrong usage is an error that names the option",
        arguments: [
            ("--folds 1", "--folds is 1, expected 2 to"), ("--output m --seeds 1", "Add --folds"),
            ("--folds 2 --seeds 1,1", "--seeds is 1,1"), ("--folds 2 --seeds 1,x", "--seeds is 1,x"),
            ("--folds 2 --checkpoint c", "Add --output"), ("--folds 2 --watch", "Add --output"),
            ("", "Missing expected argument '--output <file>'"),
            ("--folds 2 --validation photos", "--validation is the folder"),
            ("--folds 2 --keep photos/kept", "--keep is photos/kept, within the photos"),
        ])
    func usage(options: String, message: String) throws {
        try withPhotos { folder in
            let run = try shell("$imprint train photos \(options)", folder: folder)
            #expect(run.status == 64 && run.errors.contains(message), "\(run.errors)")
        }
    }

    @Test("Groups of photos stay in one fold; a label with too few groups is an error that names it")
    func groups() throws {
        try withPhotos { folder in
            let run = try shell(
                """
                echo '[["bright/0.png", "bright/1.png", "dark/0.png"]]' > groups.json
                $imprint train photos --folds 2 --groups groups.json --predictions p.csv \(Self.options)
                """, folder: folder)
            #expect(run.status == 0 && run.errors.contains("10 groups"), "\(run.errors)")
            let lines = try String(contentsOf: folder.appending(path: "p.csv"), encoding: .utf8).split(separator: "\n")
            let folds = lines.filter { line in
                ["bright/0.png", "bright/1.png", "dark/0.png"].contains { line.contains($0) }
            }.map { $0.split(separator: ",")[1] }
            #expect(folds.count == 3 && Set(folds).count == 1)
            for (groups, message) in [
                ("[[\"bright/99.png\"]]", "which is not a photo in"), ("{}", "--groups: groups.json"),
                (
                    #"{"images": [], "annotations": [], "categories": []}"#,
                    "--groups: groups.json: it has bounding boxes in the COCO format"
                ),
            ] {
                let run = try shell(
                    "echo '\(groups)' > groups.json; $imprint train photos --folds 2 --groups groups.json",
                    folder: folder)
                #expect(run.status == 1 && run.errors.contains(message), "\(run.errors)")
            }
            let pipe = try shell("echo '{}' | $imprint train photos --folds 2 --groups /dev/stdin", folder: folder)
            #expect(
                pipe.status == 1 && pipe.errors.contains("--groups: /dev/stdin: it is not a JSON list"),
                "\(pipe.errors)")
            let named = try shell("mkfifo pipe; $imprint train photos --folds 2 --groups pipe", folder: folder)
            #expect(named.status == 1 && named.errors.contains("pipe: cannot be read (it is a pipe"), "\(named.errors)")
            let many = try shell("$imprint train photos --folds 7 \(Self.options)", folder: folder)
            #expect(
                many.status == 1 && many.errors.contains("the label \"bright\" has 6 photos in 6 groups"),
                "\(many.errors)")
        }
    }
}
