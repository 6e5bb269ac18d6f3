import Foundation
import TestSupport
import Testing

@testable import ImprintModelGenerator

@Suite struct IdentifierTests {
    @Test(
        "A case name consists of the words of its label",
        arguments: [
            ("Logo", "logo"), ("NoLogo", "noLogo"), ("golden retriever", "goldenRetriever"),
            ("not_safe-for.work", "notSafeForWork"),
            ("URL", "url"), ("HTMLPage", "htmlPage"), ("IMG0001", "img0001"), ("iPhone 15", "iPhone15"),
            ("don’t", "dont"),
            ("  many   spaces ", "manySpaces"), ("C++", "c"), ("n02099601 dog", "n02099601Dog"),
            ("3D", "_3D"), ("7", "_7"), ("١٢", "_١٢"), ("\u{301}x", "_\u{301}x"),
            ("class", "`class`"), ("Default", "`default`"), ("true", "`true`"), ("Type", "type"),
            ("self", "self2"), ("init", "init2"), ("All cases", "allCases2"), ("none", "none2"), ("Some", "some2"),
            ("犬", "犬"), ("Ärger", "ärger"), ("A\u{308}rger", "ärger"), ("Δελτα", "δελτα"), ("מודל", "מודל"),
            ("nai\u{AD}ve", "naive"),
            ("🐶", "dogFace"), ("👨‍👩‍👧", "manWomanGirl"), ("🐶 dog", "dog"), ("_", "lowLine"), ("〡", "hangzhouNumeralOne"),
            ("?!", "questionMarkExclamationMark"),
            ("", "unnamed"), ("\0", "unnamed"),
        ] as [(String, String)])
    func cases(label: String, name: String) {
        #expect(Identifier.cases(for: [label]).map { Array($0.utf8) } == [Array(name.utf8)])
    }

    @Test("Labels with the same case name are numbered, and avoid the names of other labels")
    func numbered() {
        #expect(Identifier.cases(for: ["a", "A", "a2", "a!", "A2"]) == ["a", "a3", "a2", "a4", "a22"])
        #expect(Identifier.cases(for: ["class", "Class"]) == ["`class`", "class2"])
        #expect(Identifier.cases(for: ["C++", "C#", "c"]) == ["c", "c2", "c3"])
    }

    @Test(
        "A type name consists of the words of the file name",
        arguments: [
            ("Logo", "Logo"), ("two-circles v2", "TwoCirclesV2"), ("logo", "Logo"), ("3d", "_3d"),
            ("mobileNet", "MobileNet"), ("🐶", "DogFace"),
            ("Type", "TypeModel"), ("imprint", "ImprintModel"), ("swift", "SwiftModel"), ("any", "AnyModel"),
            ("bundle", "BundleModel"),
            ("label", "LabelModel"),
        ])
    func types(file: String, name: String) {
        #expect(Identifier.type(for: file) == name)
    }

    @Test("Swift accepts every character of generated names")
    func characters() throws {
        let scalars = (0...UInt32(0x10FFFF)).compactMap(Unicode.Scalar.init).filter { isPart($0) }
        try #require(scalars.count > 100_000)
        let first = scalars.filter { $0.properties.isXIDStart }.map { "_ = \($0)\n" }.joined()
        let second = String(String.UnicodeScalarView(["a"] + scalars))
        try withTemporaryFolder { folder in
            let file = folder.appending(path: "names.swift")
            try "\(first)\n_ = \(second)\n".write(to: file, atomically: true, encoding: .utf8)
            let result = try run(URL(filePath: "/usr/bin/env"), ["swiftc", "-frontend", "-parse", file.path])
            #expect(result.status == 0, "\(result.errors.prefix(2000))")
        }
    }
}
