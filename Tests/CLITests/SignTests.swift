import Foundation
import ImprintImages
import ImprintModel
import ImprintNetwork
import TestSupport
import Testing

/// `imprint sign` and `imprint verify`.
@Suite(.enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/openssl"), "OpenSSL is not installed"))
struct SignTests {
    /// Calls `body` with a folder that contains the model "m.imprint" of version 3 and the keys that the help text creates.
    private func withModel(_ body: (URL) throws -> Void) throws {
        try withTemporaryFolder { folder in
            var model = try brightnessModel(labels: ["bright", "dark"], weights: alternatingWeights(1, labels: 2))
            model.details.version = 3
            try model.write(to: folder.appending(path: "m.imprint"))
            let keys = try shell(
                """
                openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out key.pem &&
                openssl pkey -in key.pem -pubout -out public.pem &&
                openssl ecparam -name prime256v1 -genkey -out other.pem &&
                openssl pkey -in other.pem -pubout -out other-public.pem
                """, folder: folder)
            try #require(keys.status == 0, "\(keys.errors)")
            try body(folder)
        }
    }

    private let sign = "$imprint sign m.imprint --private-key key.pem"
    private let verify = "$imprint verify m.imprint --signature model.sig --public-key public.pem"

    @Test("sign writes model.sig, and verify accepts it") func roundTrip() throws {
        try withModel { folder in
            let signed = try shell(sign, folder: folder)
            #expect(signed.status == 0 && signed.output.isEmpty && signed.errors == "Wrote model.sig: 1 file signed.\n")
            let verified = try shell(verify, folder: folder)
            #expect(verified.status == 0 && verified.errors.isEmpty, "\(verified.errors)")
            #expect(verified.output == "m.imprint: the signature is valid for 1 file\n")
            // A signature replaces a signature.
            #expect(try shell(sign, folder: folder).status == 0)
        }
    }

    @Test("The JSON of sign and verify has all documented keys") func json() throws {
        try withModel { folder in
            let signed = try #require(try shell("\(sign) --json", folder: folder).lines.first)
            #expect(signed.keys.sorted() == ["digest", "event", "files", "key", "model", "output"])
            #expect(signed["event"] as? String == "finished" && signed["files"] as? Int == 1)
            let keys = [
                "changed", "digest", "error", "files", "ignored", "key", "missing", "model", "name", "unsigned",
                "verified",
            ]
            let verified = try #require(try shell("\(verify) --json", folder: folder).lines.first)
            #expect(verified.keys.sorted() == keys)
            #expect(verified["verified"] as? Bool == true && verified["name"] as? String == "m.imprint")
            #expect(verified["digest"] as? String == signed["digest"] as? String && verified["error"] is NSNull)
            try Data("x".utf8).write(to: folder.appending(path: "m.imprint"))
            let run = try shell("\(verify) --json", folder: folder)
            let failed = try #require(run.lines.first)
            #expect(run.status == 1 && failed.keys.sorted() == keys)
            #expect(failed["verified"] as? Bool == false && failed["digest"] is NSNull && failed["error"] is String)
            let changed = try #require(failed["changed"] as? [[String: String]])
            #expect(
                changed.count == 1 && changed[0]["file"] == "."
                    && changed[0].keys.sorted() == ["expected", "file", "sha256"])
        }
    }

    @Test(
        "verify rejects a model with a lower version than the minimum",
        arguments: [
            ("--minimum-version 2", 0, ""), ("--minimum-version 3", 0, ""),
            ("--minimum-version 4", 1, "the model has version 3. Expected at least version 4"),
            ("--minimum-version 0", 64, "--minimum-version is 0, expected 1 to 9007199254740991"),
        ] as [(String, Int32, String)])
    func minimumVersion(option: String, status: Int32, message: String) throws {
        try withModel { folder in
            #expect(try shell(sign, folder: folder).status == 0)
            let run = try shell("\(verify) --json \(option)", folder: folder)
            #expect(run.status == status && (message.isEmpty || run.errors.contains(message)), "\(run.errors)")
            let line = run.lines.first
            #expect(line?["verified"] as? Bool == (status == 64 ? nil : status == 0))
        }
    }

    @Test(
        "A model or signature that does not verify is a failure that names the problem",
        arguments: [
            ("printf x >> m.imprint", "m.imprint: the model differs from the signed one: it has the SHA-256"),
            ("cp other-public.pem public.pem", "--public-key names the file of the public key."),
            (
                "printf '{}' > model.sig",
                "model.sig: the signature cannot be used: the bundle is not valid: mediaType is missing."
            ),
            (
                "mkdir d && mv m.imprint d && mv d m.imprint",
                "m.imprint: the model is a folder, but the signature is for one file with the name \"m.imprint\". Expected the file that was signed."
            ),
            ("rm model.sig", "model.sig: cannot be read (No such file or directory)"),
            ("rm m.imprint", "m.imprint: cannot be read (No such file or directory)"),
            ("cp key.pem public.pem", "found \"PRIVATE KEY\", expected a public key in PEM format."),
            ("rm model.sig; $imprint sign key.pem --private-key key.pem", "the model differs from the signed one"),
        ])
    func failures(change: String, message: String) throws {
        try withModel { folder in
            let run = try shell("\(sign) && \(change)\n\(verify)", folder: folder)
            #expect(run.status == 1 && run.output.isEmpty && run.errors.contains(message), "\(run.errors)")
        }
    }

    @Test("A folder is signed with all files except ignored ones, and each difference is listed") func folders() throws
    {
        try withModel { folder in
            let run = try shell(
                """
                mkdir model && mv m.imprint model && echo card > model/card.json && echo note > model/note.txt
                $imprint sign model --private-key key.pem --output model/model.sig --ignore model/note.txt || exit 2
                verify="$imprint verify model --signature model/model.sig --public-key public.pem"
                echo other > model/note.txt && $verify || exit 3
                echo changed > model/card.json; rm model/m.imprint; echo new > model/new.txt
                $verify
                """, folder: folder)
            #expect(run.status == 1, "\(run.errors)")
            #expect(run.output == "model: the signature is valid for 2 files; not signed: model.sig, note.txt\n")
            for part in ["card.json has the SHA-256 ", "; m.imprint is missing; new.txt is not signed. Get model and"] {
                #expect(run.errors.contains(part), "\(run.errors)")
            }
        }
    }

    @Test(
        "Wrong usage of sign exits with 64",
        arguments: [
            ("-o m.imprint", "the file is the model to sign"), ("-o key.pem", "the file is the private key"),
            ("-o public.pem", "the file exists and is not a model signature that Imprint wrote"),
            ("-o ''", "A path is empty"),
        ])
    func usage(options: String, message: String) throws {
        try withModel { folder in
            let run = try shell("\(sign) \(options)", folder: folder)
            #expect(run.status == 64 && run.errors.contains(message), "\(run.errors)")
        }
    }

    @Test(
        "sign does not publish the private key, replace the signature of another model, or ignore paths outside the folder",
        arguments: [
            (
                "cp key.pem model/k.pem; $imprint sign model --private-key model/k.pem",
                "model/k.pem: the private key is in the folder of the model and would be published with it."
            ),
            (
                "ln -s model link; cp key.pem model/k.pem; $imprint sign link --private-key model/k.pem",
                "model/k.pem: the private key is in the folder of the model"
            ),
            (
                "cp key.pem model/copy.pem; $imprint sign model --private-key key.pem",
                "copy.pem in the folder of the model is a copy of the private key"
            ),
            ("$imprint sign m.imprint --private-key key.pem", "model.sig: the file is the signature of model,"),
            ("$imprint sign missing.imprint --private-key key.pem", "missing.imprint"),
            (
                "$imprint sign model --private-key key.pem --ignore card.json",
                "--ignore: card.json is not in the folder model."
            ),
            (
                "$imprint sign m.imprint -o x.sig --private-key key.pem --ignore key.pem",
                "is not in the folder m.imprint."
            ),
        ])
    func protection(command: String, message: String) throws {
        try withModel { folder in
            let prepared = try shell(
                "mkdir model && echo card > model/card.json && $imprint sign model --private-key key.pem",
                folder: folder)
            #expect(prepared.status == 0, "\(prepared.errors)")
            let signature = try Data(contentsOf: folder.appending(path: "model.sig"))
            let run = try shell(command, folder: folder)
            #expect(
                run.status == (message == "missing.imprint" ? 1 : 64) && run.errors.contains(message), "\(run.errors)")
            #expect(try Data(contentsOf: folder.appending(path: "model.sig")) == signature)
        }
    }

    @Test("sign fails for a missing or encrypted key, and for symbolic links") func signFailures() throws {
        try withModel { folder in
            for (key, message) in [
                ("missing.pem", "missing.pem: cannot be read"), ("public.pem", "expected a private key in PEM format"),
            ] {
                let run = try shell("$imprint sign m.imprint --private-key \(key)", folder: folder)
                #expect(run.status == 1 && run.errors.contains(message), "\(run.errors)")
            }
            let run = try shell(
                "mkdir d && ln -s ../m.imprint d && $imprint sign d --private-key key.pem", folder: folder)
            #expect(run.status == 1 && run.errors.contains("it is a symbolic link"), "\(run.errors)")
            #expect(!FileManager.default.fileExists(atPath: folder.appending(path: "model.sig").path))
        }
    }

    @Test("A link that leads out of the folder can be ignored") func ignoredLinks() throws {
        try withModel { folder in
            let run = try shell(
                """
                mkdir model && cp m.imprint model && ln -s ../m.imprint model/link && ln -s missing model/broken && ln -s model other
                options="--private-key key.pem --ignore other/link --ignore model/broken"
                $imprint sign model $options || exit 2
                $imprint verify model --signature model.sig --public-key public.pem || exit 3
                $imprint sign model $options --ignore model/.
                """, folder: folder)
            #expect(
                run.status == 64 && run.errors.contains("--ignore: model/. is not in the folder model."),
                "\(run.errors)")
            #expect(
                run.output == "model: the signature is valid for 1 file; not signed: broken, link\n", "\(run.output)")
        }
    }

    @Test("The command that sets a version keeps the storage of the parameters", arguments: ModelFile.Storage.allCases)
    func versionOfStorage(storage: ModelFile.Storage) throws {
        try withModel { folder in
            let network = try Network.logonet(labels: 2, inputSize: 16, width: 0.1)
            try ModelFile(
                network: network, parameters: try Parameters(network, seed: 1), labels: ["bright", "dark"],
                preprocessing: Preprocessing(width: 16, height: 16, cropAndScale: .scaleFit)
            ).write(to: folder.appending(path: "n.imprint"), as: storage)
            let signed = try shell("$imprint sign n.imprint --private-key key.pem", folder: folder)
            let option = storage == .float32 ? "" : " --precision \(storage.rawValue)"
            let advice = "imprint export --to imprint\(option) --model-version NUMBER sets it."
            #expect(signed.status == 0 && signed.errors.contains(advice), "\(signed.errors)")
        }
    }

    @Test("sign notes that a model has no version, and export adds it") func versions() throws {
        try withModel { folder in
            let run = try shell(
                """
                $imprint export m.imprint --to imprint --output n.imprint --model-version 7 --license MIT --intended-use 'Pets' || exit 2
                $imprint inspect n.imprint && $imprint inspect n.imprint --json
                """, folder: folder)
            #expect(run.status == 0, "\(run.errors)")
            #expect(run.output.contains("\nversion      7\nlicence      MIT\nuse          Pets\n"), "\(run.output)")
            let details = try #require(run.lines.first?["details"] as? [String: Any])
            #expect(details["version"] as? Int == 7 && details["license"] as? String == "MIT" && details.count == 3)
            try brightnessModel(labels: ["bright", "dark"], weights: alternatingWeights(1, labels: 2))
                .write(to: folder.appending(path: "m.imprint"))
            let signed = try shell(sign, folder: folder)
            #expect(signed.status == 0 && signed.errors.contains("The model has no version"), "\(signed.errors)")
        }
    }

    @Test(
        "Details of a model are wrong usage if they are out of range or empty",
        arguments: [
            ("--to imprint --model-version 0", "--model-version is 0, expected 1 to 9007199254740991"),
            ("--to onnx --license ' '", "--license is empty, expected a text of 1 to 10000 bytes."),
            ("--to imprint --model-version abc", "a whole number from 1 to 9007199254740991"),
        ])
    func invalidDetails(options: String, message: String) throws {
        let run = try shell("$imprint export m.imprint --output x \(options)", folder: packageFolder)
        #expect(run.status == 64 && run.errors.contains(message), "\(run.errors)")
    }

    @Test(
        "The commands of model_signing and imprint accept each other's signatures",
        .enabled(if: ReferenceSigner.python != nil, Comment(rawValue: ReferenceSigner.skipReason)))
    func reference() throws {
        try withModel { folder in
            #expect(try shell(sign, folder: folder).status == 0)
            func referenceVerifies() throws -> Bool {
                try ReferenceSigner.run(
                    "verify", "key", "m.imprint", "--signature", "model.sig", "--public_key", "public.pem",
                    folder: folder
                ).status == 0
            }
            #expect(try referenceVerifies())
            // The reference implementation also writes model.sig by default.
            let signed = try ReferenceSigner.run("sign", "key", "m.imprint", "--private_key", "key.pem", folder: folder)
            #expect(signed.status == 0, "\(signed.errors)")
            #expect(try shell(verify, folder: folder).status == 0)
            // sign does not replace a file of another program.
            #expect(try shell(sign, folder: folder).status == 64)
            try Data("x".utf8).write(to: folder.appending(path: "m.imprint"))
            #expect(try !referenceVerifies())
            #expect(try shell(verify, folder: folder).status == 1)
        }
    }
}
