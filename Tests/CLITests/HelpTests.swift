import Testing

@Suite struct HelpTests {
    @Test("Wrong use exits with 64 and says what is right")
    func wrongUse() throws {
        let unknown = try imprint("train", "photos", "--output", "m.imprint", "--network", "vgg")
        #expect(unknown.status == 64)
        #expect(unknown.errors.contains("there is no network \"vgg\"; choose one of lenet, logonet"))
        let epochs = try imprint("train", "photos", "--output", "m.imprint", "--epochs", "0")
        #expect(epochs.status == 64)
        #expect(epochs.errors.contains("--epochs is 0, expected 1 to 100000"))
    }
}
