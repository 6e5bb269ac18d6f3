import Foundation
import TestSupport
import Testing

/// `imprint quantize`, and the option --precision int8.
@Suite struct QuantizeTests {
    @Test("A quantized model is smaller, predicts in int8, and agrees with the original one") func quantize() throws {
        try withTemporaryFolder { folder in
            let photos = folder.appending(path: "photos").path
            #expect(try imprint("draw", "two-circles", "--count", "24", "--output", photos).status == 0)
            let (model, small) = (folder.appending(path: "m.imprint"), folder.appending(path: "q.imprint"))
            #expect(try imprint("train", photos, "--epochs", "1", "--output", model.path, "--quiet").status == 0)
            let run = try imprint("quantize", model.path, "--photos", photos, "--output", small.path, "--json")
            #expect(run.status == 0, "\(run.errors)")
            let line = try #require(JSONSerialization.jsonObject(with: Data(run.output.utf8)) as? [String: Any])
            #expect(line["event"] as? String == "finished" && line["calibrationPhotos"] as? Int ?? 0 > 0)
            #expect((line["int8Layers"] as? [String])?.isEmpty == false)
            func size(_ url: URL) throws -> Int { try Data(contentsOf: url).count }
            #expect(try size(small) < size(model))

            let inspection = try imprint("inspect", small.path, "--plan")
            #expect(inspection.output.contains("precision    int8 in ") && inspection.output.contains("quantize"))
            let comparison = try imprint("compare", model.path, small.path, "--images", photos, "--json")
            #expect(
                comparison.output.contains("\"topAgreement\":1") || comparison.output.contains("\"topAgreement\":0.9"))
            let evaluation = try imprint("evaluate", small.path, photos, "--json")
            #expect(evaluation.output.contains("\"numericPrecision\":\"int8\""))
            let float = try imprint("evaluate", small.path, photos, "--json", "--precision", "float32")
            #expect(float.output.contains("\"numericPrecision\":\"float32\""))

            let plain = try imprint(
                "export", small.path, "--to", "imprint", "--output", folder.appending(path: "plain.imprint").path)
            #expect(plain.status == 0 && plain.errors.contains("--precision int8 keeps the"), "\(plain.errors)")
            let versioned = folder.appending(path: "versioned.imprint").path
            let kept = try imprint(
                "export", small.path, "--to", "imprint", "--precision", "int8", "--model-version", "4", "--output",
                versioned)
            #expect(kept.status == 0 && !kept.errors.contains("quantization"), "\(kept.errors)")
            let lines = try [small.path, versioned].map {
                try #require(try imprint("inspect", $0, "--json").lines.first)
            }
            #expect(lines[0]["digest"] as? String == lines[1]["digest"] as? String)
            #expect(lines[0]["int8Layers"] as? [String] == lines[1]["int8Layers"] as? [String])

            // Without an option, ONNX and Core ML files keep the int8 layers; float32 and float16 apply to all layers.
            for format in ["onnx", "coreml"] {
                func exported(_ model: String, _ options: String = "") throws -> Data {
                    let run = try shell(
                        "$imprint export \(model) --to \(format) \(options) --output exported-\(format)", folder: folder
                    )
                    #expect(run.status == 0 && run.errors == "Wrote exported-\(format).\n", "\(run.errors)")
                    return try Data(contentsOf: folder.appending(path: "exported-\(format)"))
                }
                let int8 = try exported("q.imprint")
                #expect(try exported("q.imprint", "--precision int8") == int8)
                for option in ["--precision float32", "--precision float16"] {
                    #expect(try exported("q.imprint", option) == exported("plain.imprint", option))
                }
                #expect(try exported("plain.imprint").count > int8.count)
            }

            let delta = folder.appending(path: "user.delta").path
            let personalization = try imprint("personalize", small.path, photos, "--output", delta)
            #expect(personalization.status == 0, "\(personalization.errors)")
            let merge = try imprint("merge", small.path, delta, "--output", folder.appending(path: "new.imprint").path)
            #expect(merge.status == 0 && merge.errors.contains("computes in float32"), "\(merge.errors)")

            let tuned = try imprint(
                "quantize", model.path, "--photos", photos, "--output", small.path, "--fine-tune", "--steps", "10",
                "--json")
            #expect(
                tuned.status == 0 && tuned.output.contains("\"relativeErrorBeforeFineTuning\":0."), "\(tuned.errors)")
            let alone = try imprint("quantize", model.path, "--photos", photos, "--output", small.path, "--steps", "10")
            #expect(
                alone.status == 64
                    && alone.errors.contains("--steps needs --fine-tune, which is missing. Add --fine-tune"),
                "\(alone.errors)")

            // The original model is not quantized, and the new one already is.
            let unquantized =
                "m.imprint: precision is int8 for a model without quantization, expected float32 or bfloat16."
            for command in [
                "classify m.imprint photos", "evaluate m.imprint photos", "serve m.imprint --port 0",
                "studio m.imprint", "detect m.imprint photo.png", "compare q.imprint m.imprint --images photos",
            ] {
                let failed = try shell("$imprint \(command) --precision int8", folder: folder)
                #expect(
                    failed.status == 64 && failed.output.isEmpty
                        && failed.errors.contains("Error: \(unquantized)\n  imprint quantize"),
                    "\(command): \(failed.errors)")
            }
            let again = try imprint("quantize", small.path, "--photos", photos, "--output", small.path + "2")
            #expect(
                again.status == 64
                    && again.errors.hasPrefix(
                        "Error: \(small.path): the precision of the model is int8, expected float32"),
                "\(again.errors)")
            for (limit, message) in [
                ("0", "Error: --error-limit is 0, expected more than 0 and at most 1."),
                ("1e-9", "Error: \(model.path): --error-limit is 1e-09, expected a larger number: the outputs differ"),
            ] {
                let none = try imprint(
                    "quantize", model.path, "--photos", photos, "--output", small.path, "--error-limit", limit)
                #expect(none.status == 64 && none.errors.hasPrefix(message), "\(none.errors)")
            }
            let few = folder.appending(path: "few").path
            #expect(try imprint("draw", "two-circles", "--count", "2", "--output", few).status == 0)
            let tooFew = try imprint("quantize", model.path, "--photos", few, "--output", small.path)
            #expect(
                tooFew.status == 1 && tooFew.errors.hasPrefix("Error: \(few): found 2 readable files, ")
                    && tooFew.errors.contains("expected at least 4 photos"), "\(tooFew.errors)")
        }
    }
}
